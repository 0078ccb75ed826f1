"""Regressions as SARIF 2.1.0, so that a code host shows them at the line that explains them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.report.facts import guard as of_guard
from pyrometer.rules.lint.output.sarif import sarif_document


def sarif_of(report: GuardReport) -> dict[str, Any]:
    """One run: an error for each regression, a warning for what is worse within its limit, a note for what is undecided."""
    told = [
        (gate, level)
        for gate in of_guard.worth_telling(report)
        if (level := _level(gate, trusted=report.trusted))
    ]
    metrics = sorted({gate.metric for gate, _ in told})
    return sarif_document(
        "Pyrometer guard",
        [
            {"id": metric, "name": metric, "shortDescription": {"text": f"{metric}, head against base"}}
            for metric in metrics
        ],
        [_result(gate, level, metrics.index(gate.metric)) for gate, level in told],
        [f"{miss.benchmark}: {miss.reason}" for miss in report.missed if miss.failed],
    )


def _level(gate: Gate, *, trusted: bool) -> str | None:
    if gate.outcome == "regressed":
        return "error" if trusted else "note"
    if gate.outcome == "undecided":
        return "note"
    return "warning" if gate.warning is not None else None


def _result(gate: Gate, level: str, index: int) -> dict[str, Any]:
    why = "".join(f"\n{line}" for line in of_guard.why_lines([gate]))
    text = f"{gate.benchmark}: {gate.metric} {of_guard.WORDS[gate.outcome]}: {of_guard.change(gate)}{why}"
    return {
        "ruleId": gate.metric,
        "ruleIndex": index,
        "level": level,
        "message": {"text": text},
        "locations": [_location(gate)],
        "partialFingerprints": {"gate/v1": f"{gate.benchmark}/{gate.metric}"},
    }


def _location(gate: Gate) -> dict[str, Any]:
    """The line that explains it, else the file of the benchmark."""
    place = next(
        (cause.place for cause in gate.why if cause.place and cause.place.file and cause.place.line), None
    )
    file = gate.benchmark.partition("::")[0].partition(":")[0] if place is None else str(place.file)
    region = {} if place is None else {"region": {"startLine": place.line}}
    return {
        "physicalLocation": {"artifactLocation": {"uri": quote(file), "uriBaseId": "%SRCROOT%"}, **region}
    }
