"""Documents of the first schema are read as those of today."""

from __future__ import annotations

from typing import Any

import pytest

from pyrometer.errors import InputError
from pyrometer.record import from_dict
from pyrometer.report.kinds import read_document, record_type
from pyrometer.rules.finding import Finding
from pyrometer.store.upgrade import upgraded

HEAD = {"schema_version": 1, "tool_version": "0.1.0", "run_id": "r1", "created": None, "command": None}
FINDING = {
    "code": "PYR201", "name": "peak-of-activations", "severity": "warning", "message": "they are large", "where": {"line": 3},
    "links": ["/memory_profile/ledger_bytes/activations", "/trace/memory"], "fix_class": "tolerance", "lever": "amp",
    "confidence": "high", "advice": "Compute them again.", "rewrite": "checkpoint(f, x)",
    "predicted_gain": {"saves_bytes": 8, "method": "rehearsed"},
}  # fmt: skip
DOCUMENTS_OF_1: dict[str, dict[str, Any]] = {
    "audit": {"target": "m.py:f", "groups": [], "score": None, "band": None, "applicable": 0, "passed": 0, "unknown": 0},
    "bench": {"target": "m.py:f", "versus": "n.py:f", "measurement": None},
    "check": {"target": "m.py:f", "measurement": None, "phases": [], "memory": None, "findings": [FINDING], "report_path": None},
    "trace": {"target": "a.json", "verdict": None, "ranks": []},
}  # fmt: skip


@pytest.mark.parametrize("kind", DOCUMENTS_OF_1)
def test_a_document_of_the_first_schema_is_read(kind: str) -> None:
    plain = upgraded(kind, {**HEAD, **DOCUMENTS_OF_1[kind]})
    document = read_document(kind, plain)
    assert type(document) is record_type(kind)
    assert document.run_id == "r1"
    assert document.evidence.target == DOCUMENTS_OF_1[kind]["target"]  # type: ignore[attr-defined]


def test_a_document_of_a_newer_schema_is_refused_and_says_what_to_do() -> None:
    with pytest.raises(
        InputError, match="schema version 99, and this Pyrometer reads up to 2; upgrade Pyrometer"
    ):
        read_document("check", {**HEAD, "schema_version": 99})


def test_a_finding_keeps_its_advice_and_points_at_the_moved_part() -> None:
    plain = upgraded("check", {**HEAD, **DOCUMENTS_OF_1["check"]})
    finding = from_dict(Finding, plain["diagnosis"]["findings"][0])
    assert (finding.advice.title, finding.advice.fix_class, finding.advice.lever) == (
        "Compute them again.", "tolerance", "amp",
    )  # fmt: skip
    assert finding.advice.saves_bytes == 8
    assert finding.links == ["/memory/ledger_bytes/activations", "/trace/memory"]


def test_the_whole_of_a_compilation_or_profile_becomes_a_part() -> None:
    for kind, part in (("compile", "compiled"), ("memory", "memory"), ("snapshot", "snapshot")):
        plain = upgraded(
            kind, {**HEAD, "target": "m.py:f", "environment": None, "diff": None, "peak_bytes": 7}
        )
        assert plain["evidence"][part]["peak_bytes"] == 7
        assert plain["diff"] is None


def test_of_several_ranks_the_one_of_the_verdict_is_looked_at() -> None:
    ranks = [{"rank": 0}, {"rank": 3}]
    plain = upgraded("trace", {**HEAD, "target": "a", "ranks": ranks, "verdict": {"rank": 3}, "diff": None})
    assert plain["evidence"]["trace"] == {"rank": 3}
    assert plain["evidence"]["ranks"] == ranks
    both = upgraded("trace", {**HEAD, "target": "a", "ranks": ranks, "verdict": None, "diff": {"rows": []}})
    assert (both["before"], both["evidence"]["trace"]) == ({"rank": 0}, {"rank": 3})


def test_what_to_do_about_a_reservation_is_advice() -> None:
    caveat = {"code": "drifting", "message": "it drifts", "hint": "wait"}
    plain = upgraded("calibration", {**HEAD, "calibration": {"advice": [caveat]}})
    assert plain["calibration"]["advice"][0]["advice"]["title"] == "wait"


def test_documents_of_today_are_left_alone() -> None:
    document = {"schema_version": 2, "evidence": {"target": "m.py:f"}}
    assert upgraded("check", document) is document
