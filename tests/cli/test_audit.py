"""`pyrometer audit` and the findings of `pyrometer check`, as a user runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pyrometer.report.schema import schema_of

ENTRY = "from pyrometer.cli.main import run; run()"
MODEL = """
import torch
from torch import nn
import pyrometer as pm

class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for i in range(x.shape[0]):
            rows.append((x[i] - x[i].mean()) / (x[i].std() + 1e-6))
        return nn.functional.dropout(torch.stack(rows), 0.5)

def make():
    model = nn.Sequential(Rows(), nn.Linear(16, 16))
    return pm.Inference(model, (torch.randn(100, 16),), unit="rows", per_step=100)
"""
EVIL = "</script><img src=x onerror=alert(1)>"
"""No legal name of a folder holds a slash: what stands before it is a folder, what is behind it a file."""


def pyrometer(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ENTRY, *arguments], capture_output=True, text=True, check=False, cwd=project
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def audited(project: Path) -> tuple[subprocess.CompletedProcess[str], Any]:
    """One audit with everything asked for at once."""
    done = pyrometer(
        project,
        "audit",
        "model.py:make",
        "--budget",
        "1s",
        "--json",
        "--fail-under",
        "100",
        "-o",
        "audit.html",
    )
    return done, json.loads(done.stdout)


@pytest.mark.slow
def test_an_audit_is_one_valid_document(audited: Any) -> None:
    document = audited[1]
    jsonschema.validate(document, schema_of("audit"))
    assert document["evidence"]["target"] == "model.py:make"
    audit = document["diagnosis"]["audit"]
    assert audit["passed"] <= audit["applicable"]
    assert audit["score"] == pytest.approx(100 * audit["passed"] / audit["applicable"])


@pytest.mark.slow
def test_nothing_passes_or_fails_without_evidence(audited: Any) -> None:
    items = [item for group in audited[1]["diagnosis"]["audit"]["groups"] for item in group["items"]]
    assert {item["status"] for item in items} >= {"pass", "fail", "not applicable"}
    for item in items:
        assert item["reason"]
        assert bool(item["evidence"]) == (item["status"] in {"pass", "fail"})
        assert (item["advice"] is not None) == (item["status"] == "fail")


@pytest.mark.slow
def test_the_faults_of_the_program_fail_their_items(audited: Any) -> None:
    items = {
        item["code"]: item for group in audited[1]["diagnosis"]["audit"]["groups"] for item in group["items"]
    }
    assert items["A801"]["status"] == "fail"  # dropout in inference
    assert items["A301"]["status"] == "fail"  # a loop over rows
    assert items["A301"]["evidence"]["finding"] == "PYR109"
    assert items["A401"]["status"] == "not applicable"


@pytest.mark.slow
def test_a_score_below_the_one_asked_for_is_told_by_the_exit_code(audited: Any) -> None:
    done, document = audited
    assert document["diagnosis"]["score"] < 100
    assert done.returncode == 1


@pytest.mark.slow
def test_an_audit_is_stored_shown_and_written_as_a_page(project: Path, audited: Any) -> None:
    process = pyrometer(project, "show", "last", "--json")
    assert (
        json.loads(process.stdout)["diagnosis"]["audit"]["groups"]
        == audited[1]["diagnosis"]["audit"]["groups"]
    )
    page = (project / "audit.html").read_text(encoding="utf-8")
    assert "model-design" in page
    assert "A301" in page


@pytest.mark.slow
def test_in_the_terminal_a_reached_score_is_no_failure(project: Path) -> None:
    done = pyrometer(project, "audit", "model.py:make", "--budget", "1s", "--fail-under", "1", "--no-store")
    assert done.returncode == 0, done.stderr
    assert "score" in done.stdout
    assert "A301" in done.stdout


@pytest.mark.parametrize("target", ["missing.py:make", "model.py:nothing_here"])
def test_a_bad_target_is_one_line(project: Path, call: Callable[..., Any], target: str) -> None:
    done = call(project, "audit", target, "--budget", "1s")
    assert done.returncode in {2, 3}
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr


def test_a_score_out_of_range_is_refused(project: Path, call: Callable[..., Any]) -> None:
    assert call(project, "audit", "model.py:make", "--fail-under", "101").returncode == 2


class Tags(HTMLParser):
    """Every tag with its attributes, as a browser reads a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.mark.slow
def test_the_page_of_a_check_shows_findings_and_escapes_the_names_of_files(tmp_path: Path) -> None:
    folder, _, file = EVIL.partition("/")
    place = tmp_path / folder / f"{file}.py"
    place.parent.mkdir()
    place.write_text(MODEL, encoding="utf-8")
    target = f"{folder}/{file}.py:make"
    done = pyrometer(tmp_path, "check", target, "--budget", "1s", "--json", "-o", "check.html", "--no-store")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("check"))
    assert any(EVIL in (finding["where"]["file"] or "") for finding in document["diagnosis"]["findings"])
    page = (tmp_path / "check.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in tags.seen)
    assert EVIL not in page
    ids = {attributes.get("id") for _, attributes in tags.seen}
    assert {"findings", "finding-1"} <= ids
    assert re.search(r"PYR109", page)
