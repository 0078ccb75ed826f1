"""The order of findings: what knows the cause before what shows its cost, then by predicted gain; and which count the same cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pyrometer.rules.finding import Finding
from pyrometer.rules.overlap import explains
from pyrometer.rules.rule import Module

Key = tuple[float, ...]

_SEVERITY = {"error": 0, "warning": 1, "info": 2}
_CONFIDENCE = {"high": 0, "medium": 1, "low": 2}
_SCOPE = {"mechanism": 0, "symptom": 1, "general": 2, "measurement": 3}
"""What knows more comes first."""

LITTLE = 0.05
"""Of the step, or of the peak: what is known to promise less is a remark. Runs of one program differ by as much."""

UNPROVEN = 0.5
"""Of a promise to be free of all that a place takes, where nobody said how: what is general does not know a way."""

MOST_BESIDE = 1.25
"""Times the share of a finding that another at its line may take and still be of the same time."""

GROWTH = "leak:"
"""Begins the resources of what grows with every step, without an end."""

COLLECTED = "leak:cycles"
"""Grows only until Python collects its garbage."""


def ranked(
    findings: Iterable[Finding],
    *,
    peak_bytes: int | None = None,
    modules: Sequence[Module] = (),
    one_track: bool = False,
) -> list[Finding]:
    """Sort findings, what the user gains most by first, and say which overlap with one above.

    What grows without an end comes first, then errors: no gain outweighs wrong results. Remarks come last, what names a
    cause first; what promises next to nothing is one. Else the share of
    the step, or of the peak, counts that the advice is predicted to save; where nothing is predicted, half of what it costs, and
    of a prediction of low confidence only what it saves at worst. What promises nothing comes after all that does, however
    small; there confidence counts. A finding that names the mechanism stands above the symptoms that it explains, whatever these
    promise, and so high that it does; what is general and is explained is left out.

    Args:
        findings: in any order.
        peak_bytes: of memory, to compare bytes with time.
        modules: source files, which say what belongs to one place.
        one_track: nothing runs beside the host, so that large shares of a step overlap.
    """
    found = sorted(findings, key=lambda finding: _key(finding, peak_bytes))
    keys = [_key(finding, peak_bytes) for finding in found]
    causes = [_cause(i, found, modules, one_track=one_track) for i in range(len(found))]
    places = list(keys)
    for symptom in range(len(found)):
        cause = causes[symptom]
        while cause is not None:  # and what accounts for that: each knows more than the one before
            places[cause] = min(places[cause], keys[symptom])
            cause = causes[cause]
    order = sorted(
        (i for i, cause in enumerate(causes) if cause is None or found[i].scope != "general"),
        key=lambda i: (places[i], _SCOPE[found[i].scope], keys[i]),
    )
    told = [finding if i in causes else _weighed(finding, peak_bytes) for i, finding in enumerate(found)]
    return _overlapping(sorted(order, key=lambda i: told[i].severity == "info"), told, causes)


def _weighed(finding: Finding, peak_bytes: int | None) -> Finding:
    """The same, as a remark where it is known to promise next to nothing."""
    little = 0.0 < promise(finding, peak_bytes) < LITTLE
    if not little or finding.severity != "warning" or grows(finding):
        return finding
    return msgspec.structs.replace(finding, severity="info")


def promise(finding: Finding, peak_bytes: int | None = None) -> float:
    """Share of the step's time, or of the peak, that the advice is predicted to save; 0 when nothing is known."""
    gain, cost = finding.advice.gain, finding.cost
    if gain is not None and gain.ratio_low is not None:
        high = gain.ratio_high if gain.ratio_high is not None else 1.0
        low = high if finding.confidence == "low" else gain.ratio_low
        return max(0.0, 1 - (low + high) / 2) * (UNPROVEN if finding.scope == "general" else 1.0)
    saved = gain.saves_bytes if gain is not None else None
    if saved is not None and peak_bytes:
        return min(1.0, max(0.0, saved / peak_bytes))
    if cost is None:
        return 0.0
    if cost.share is not None:
        return cost.share / 2
    return min(1.0, cost.bytes / peak_bytes) / 2 if cost.bytes and peak_bytes else 0.0


def grows(finding: Finding) -> bool:
    """Whether it is about what takes more with every step until the program fails."""
    resource = finding.resource or ""
    return (
        finding.severity != "info"
        and (resource == GROWTH.rstrip(":") or resource.startswith(GROWTH))
        and resource != COLLECTED
    )


def _cause(
    number: int, found: Sequence[Finding], modules: Sequence[Module], *, one_track: bool
) -> int | None:
    """The first finding, in this order, that knows more and accounts for another; null where none does."""
    effect = found[number]
    for i, other in enumerate(found):
        knows_more = _SCOPE[other.scope] < _SCOPE[effect.scope]
        weighs = other.severity != "info" or effect.severity == "info"
        if (
            knows_more
            and weighs
            and other.confidence != "low"
            and explains(other, effect, modules, one_track=one_track)
        ):
            return i
    return None


def _overlapping(
    order: Sequence[int], found: Sequence[Finding], causes: Sequence[int | None]
) -> list[Finding]:
    """The findings in this order, each with the codes of those above that count the same cost."""
    above: dict[str, list[str]] = {}
    result: list[Finding] = []
    for i in order:
        finding, cause = found[i], causes[i]
        same = above.setdefault(finding.resource, []) if finding.resource else []
        here = [other.code for other in result if _of_one_line(other, finding)]
        codes = [*([] if cause is None else [found[cause].code]), *same, *here]
        result.append(msgspec.structs.replace(finding, overlaps=list(dict.fromkeys(codes))))
        if finding.severity != "info":
            same.append(finding.code)
    return result


def _of_one_line(first: Finding, second: Finding) -> bool:
    """Whether the time that the second speaks of is that of a line which the first would mend already."""
    place, time = first.where, first.cost
    if first.severity == "info" or place.line is None or time is None or second.cost is None:
        return False
    is_here = (place.file, place.line) == (second.where.file, second.where.line)
    return is_here and (second.cost.share or 1.0) <= MOST_BESIDE * (time.share or 0.0)


def _key(finding: Finding, peak_bytes: int | None) -> Key:
    return (
        not grows(finding),
        _SEVERITY[finding.severity],
        _SCOPE[finding.scope] if finding.severity == "info" else 0,
        -round(promise(finding, peak_bytes), 4),
        finding.advice.gain is None,
        finding.cost is None,
        _CONFIDENCE[finding.confidence],
        float(finding.code[3:]),
        finding.where.line or 0,
    )
