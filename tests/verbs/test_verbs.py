"""The verbs as functions: the documents of the command line, with what their pages draw."""

from __future__ import annotations

import json

import pytest
import torch
from click.testing import CliRunner

import pyrometer as pm
from pyrometer.cli.main import cli
from pyrometer.errors import InputError, TargetError
from pyrometer.report.kinds import read_document
from pyrometer.store.store import Store

SLOW_TEXT = """
import torch

def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


@pytest.fixture(scope="module")
def model():
    return torch.nn.Linear(8, 2), torch.randn(4, 8)


@pytest.fixture(scope="module")
def found(model, tmp_path_factory):
    store = tmp_path_factory.mktemp("store") / "runs"
    return pm.check(*model, budget_s=0.1, sources=[], store=store), store


def test_check_is_the_document_of_the_verb(found):
    document, _ = found
    plain = json.loads(document.to_json())
    assert read_document("check", plain).evidence == document.evidence
    assert document.evidence.measurement.median_s > 0
    assert document.evidence.trace is not None
    assert document.diagnosis.target == "Linear"
    assert "Linear" in str(document).splitlines()[0]
    assert "pyrometer check" not in str(document), "there is no command line to repeat"
    assert "--full" not in str(document)


def test_check_keeps_the_run_where_it_is_told_to(found):
    document, store = found
    run = Store.open(store).load(document.run_id)
    assert (run.kind, run.target) == ("check", "Linear")
    assert run.document["evidence"]["target"] == "Linear"
    assert [artifact.name for artifact in run.artifacts] == ["attachments.json.gz"]


def test_the_page_draws_the_trace(found, tmp_path):
    document, _ = found
    drawn = document.save(tmp_path / "drawn.html").read_text()
    bare = type(document)(evidence=document.evidence, diagnosis=document.diagnosis)
    assert document.attachments.traces
    assert bare.attachments is None
    assert len(drawn) > len(bare.save(tmp_path / "bare.html").read_text()) + 10_000


def test_nothing_is_kept_by_default(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = pm.audit(*model, budget_s=0.05, sources=[])
    assert document.run_id is None
    assert list(tmp_path.iterdir()) == []
    assert document.audit.score == document.diagnosis.score
    assert "score" in str(document)


def test_a_target_is_taken_as_the_command_line_takes_it(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(
        "import torch\ndef work():\n    return torch.nn.Linear(8, 2), (torch.zeros(4, 8),)\n"
    )
    monkeypatch.chdir(tmp_path)
    document = pm.check("model.py:work", budget_s=0.05)
    assert document.target == "model.py:work"
    with pytest.raises(TargetError, match=r"modle\.py"):
        pm.check("modle.py:work")
    with pytest.raises(InputError, match="workload"):
        pm.check(3)


def test_lint_gives_what_the_verb_prints(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(SLOW_TEXT)
    monkeypatch.chdir(tmp_path)
    result = pm.lint("train.py")
    printed = CliRunner().invoke(cli, ["lint", "train.py", "--json"], standalone_mode=False)
    assert json.loads(result.to_json()) == json.loads(printed.stdout)
    assert [finding.code for finding in result.findings] == ["PYR101"]
    assert str(result).startswith("train.py:10:")
    assert pm.lint(["train.py"], ignore="PYR101").findings == []
    assert [finding.code for finding in pm.lint(tmp_path, select=["PYR101"]).findings] == ["PYR101"]
    with pytest.raises(InputError, match=r"tarin\.py"):
        pm.lint("tarin.py")
