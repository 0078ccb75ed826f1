"""The order of findings: by predicted gain; and which of them count the same cost."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pyrometer.rules.finding import Finding

_SEVERITY = {"error": 0, "warning": 1, "info": 2}
RESERVATIONS = "PYR0"
"""Begins the codes of rules about measuring."""

_CONFIDENCE = {"high": 0, "medium": 1, "low": 2}


def ranked(findings: Iterable[Finding], *, peak_bytes: int | None = None) -> list[Finding]:
    """Sort findings, what promises most first, and say which overlap with one above.

    Errors come first: no gain outweighs wrong results. Then the share of the step, or of the peak, that the advice is
    predicted to save; where nothing is predicted, half of what it costs, and of a prediction of low confidence only what
    it saves at worst. What promises nothing comes after all that does, however small; there severity and confidence
    count, and reservations about the measurement come last.
    """
    order = sorted(findings, key=lambda one: _key(one, peak_bytes))
    above: dict[str, list[str]] = {}
    result = []
    for finding in order:
        same = above.setdefault(finding.resource, []) if finding.resource else []
        result.append(msgspec.structs.replace(finding, overlaps=list(dict.fromkeys(same))))
        if finding.severity != "info":
            same.append(finding.code)
    return result


def promise(finding: Finding, peak_bytes: int | None = None) -> float:
    """Share of the step's time, or of the peak, that the advice is predicted to save; 0 when nothing is known."""
    gain, cost = finding.advice.gain, finding.cost
    if gain is not None and gain.ratio_low is not None:
        high = gain.ratio_high if gain.ratio_high is not None else 1.0
        low = high if finding.confidence == "low" else gain.ratio_low
        return max(0.0, 1 - (low + high) / 2)
    saved = gain.saves_bytes if gain is not None else None
    if saved is not None and peak_bytes:
        return min(1.0, max(0.0, saved / peak_bytes))
    if cost is None:
        return 0.0
    if cost.share is not None:
        return cost.share / 2
    return min(1.0, cost.bytes / peak_bytes) / 2 if cost.bytes and peak_bytes else 0.0


def _key(finding: Finding, peak_bytes: int | None) -> tuple[float, ...]:
    return (
        finding.severity != "error",
        -round(promise(finding, peak_bytes), 4),
        finding.advice.gain is None,
        finding.cost is None,
        _SEVERITY[finding.severity],
        finding.code.startswith(RESERVATIONS),
        _CONFIDENCE[finding.confidence],
        float(finding.code[3:]),
        finding.where.line or 0,
    )
