"""`pyrometer audit` and the findings of `pyrometer check`: on the record of a program, and once as a user runs it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pyrometer.evidence.observed import Observed
from pyrometer.report.schema import schema_of
from recorded import FILES, recording

ENTRY = "from pyrometer.cli.main import run; run()"
EVIL = "</script><img src=x onerror=alert(1)>"
"""No legal name of a folder holds a slash: what stands before it is a folder, what is behind it a file."""


Call = Callable[..., Any]


@pytest.fixture
def place_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A folder with the program as `<name>.py`, of which everything is observed at once, as it was recorded."""

    def write(name: str) -> Path:
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        shutil.copy(FILES["rows"], file)
        seen = Observed(evidence=recording("rows-workload", file).evidence)
        monkeypatch.setattr("pyrometer.evidence.observe.observe", lambda *_: seen)
        return tmp_path

    return write


@pytest.fixture
def project(place_of: Callable[[str], Path]) -> Path:
    return place_of("model")


def items_of(document: dict[str, Any]) -> dict[str, Any]:
    """The answers of an audit by their codes."""
    return {
        item["code"]: item for group in document["diagnosis"]["audit"]["groups"] for item in group["items"]
    }


def assert_faults_fail(document: dict[str, Any]) -> None:
    items = items_of(document)
    assert items["A801"]["status"] == "fail"  # dropout in inference
    assert items["A301"]["status"] == "fail"  # a loop over rows
    assert items["A301"]["evidence"]["finding"] in {"PYR109", "PYR126"}
    assert items["A401"]["status"] == "not applicable"
    jsonschema.validate(document, schema_of("audit"))
    audit = document["diagnosis"]["audit"]
    assert audit["passed"] <= audit["applicable"]
    assert audit["score"] == pytest.approx(100 - sum(item["lost"] for item in items.values()))
    assert {"A301", "A801"} == {code for code, item in items.items() if item["lost"] > 5}
    assert document["diagnosis"]["score"] < 100


@pytest.mark.slow
def test_an_audit_that_a_user_runs_finds_the_faults_of_a_program(tmp_path: Path, call: Call) -> None:
    shutil.copy(FILES["rows"], tmp_path / "model.py")
    asked = ["audit", "model.py:workload", "--budget", "1s", "--json", "--fail-under", "100"]
    done = call(tmp_path, *asked)
    document = json.loads(done.stdout)
    assert_faults_fail(document)
    assert document["evidence"]["target"] == "model.py:workload"
    assert done.returncode == 1


def test_an_audit_is_one_valid_document_in_which_the_faults_of_the_program_fail(
    project: Path, call: Call
) -> None:
    assert_faults_fail(json.loads(call(project, "audit", "model.py:workload", "--json").stdout))


def test_nothing_passes_or_fails_without_evidence(project: Path, call: Call) -> None:
    items = items_of(json.loads(call(project, "audit", "model.py:workload", "--json").stdout)).values()
    assert {item["status"] for item in items} >= {"pass", "fail", "not applicable"}
    for item in items:
        assert item["reason"]
        assert bool(item["evidence"]) == (item["status"] in {"pass", "fail"})
        assert (item["advice"] is not None) == (item["status"] == "fail")


@pytest.mark.parametrize(("asked", "code"), [("100", 1), ("1", 0)])
def test_a_score_below_the_one_asked_for_is_told_by_the_exit_code(
    project: Path, call: Call, asked: str, code: int
) -> None:
    done = call(project, "audit", "model.py:workload", "--fail-under", asked, "--no-store")
    assert done.returncode == code, done.stderr
    assert "score" in done.stdout
    assert "A301" in done.stdout


def test_an_audit_is_stored_shown_and_written_as_a_page(project: Path, call: Call) -> None:
    audited = json.loads(call(project, "audit", "model.py:workload", "--json", "-o", "audit.html").stdout)
    shown = json.loads(call(project, "show", "last", "--json").stdout)
    assert shown["diagnosis"]["audit"]["groups"] == audited["diagnosis"]["audit"]["groups"]
    page = (project / "audit.html").read_text(encoding="utf-8")
    assert "model-design" in page
    assert "A301" in page


@pytest.mark.parametrize("target", ["missing.py:make", "model.py:nothing_here"])
def test_a_bad_target_is_one_line(project: Path, call: Call, target: str) -> None:
    done = call(project, "audit", target, "--budget", "1s")
    assert done.returncode in {2, 3}
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr


def test_a_score_out_of_range_is_refused(project: Path, call: Call) -> None:
    assert call(project, "audit", "model.py:workload", "--fail-under", "101").returncode == 2


class Tags(HTMLParser):
    """Every tag with its attributes, as a browser reads a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_of_a_check_shows_findings_and_escapes_the_names_of_files(
    place_of: Callable[[str], Path], call: Call
) -> None:
    folder = place_of(EVIL)
    done = call(folder, "check", f"{EVIL}.py:workload", "--json", "-o", "check.html", "--no-store")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("check"))
    assert any(EVIL in (finding["where"]["file"] or "") for finding in document["diagnosis"]["findings"])
    page = (folder / "check.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in tags.seen)
    assert EVIL not in page
    ids = {attributes.get("id") for _, attributes in tags.seen}
    assert {"findings", "finding-1"} <= ids
    assert re.search(r"PYR109", page)
