"""Results print their short answer, and save themselves by the suffix."""

from __future__ import annotations

import json

import pytest
import torch

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.evidence.evidence import Evidence
from pyrometer.record import Record, from_json
from pyrometer.report.documents import BenchDocument
from pyrometer.rules.explain import explain


@pytest.fixture(scope="module")
def measured():
    return pm.measure(torch.nn.Linear(8, 2), torch.randn(4, 8), budget_s=0.05)


@pytest.fixture(scope="module")
def document(measured):
    evidence = Evidence(target="model.py:work", measurement=measured)
    return BenchDocument(evidence=evidence, diagnosis=explain(evidence))


class Point(Record, frozen=True, kw_only=True):
    x_s: float


def test_print_shows_the_short_answer(measured, document):
    lines = str(document).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert "model.py:work" in lines[0]
    assert "ms" in str(measured) or "µs" in str(measured)
    assert repr(measured).startswith("Measurement(")
    assert str(Point(x_s=1.5)) == repr(Point(x_s=1.5))


def test_a_result_saves_itself_in_each_form(measured, document, tmp_path):
    for name, record in {"measured": measured, "document": document}.items():
        page = record.save(tmp_path / f"{name}.html").read_text()
        assert page.lower().startswith("<!doctype html>")
        assert record.save(str(tmp_path / f"{name}.md")).read_text().startswith("## ")
        assert json.loads(record.save(tmp_path / f"{name}.json").read_text()) == json.loads(record.to_json())
    assert from_json(pm.Measurement, measured.to_json()) == measured


def test_a_place_that_cannot_be_meant_is_refused(measured, tmp_path):
    with pytest.raises(InputError, match=r"x\.pdf.*\.html, \.json, \.md"):
        measured.save(tmp_path / "x.pdf")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        measured.save(tmp_path / "folder.html")
