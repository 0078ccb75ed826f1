"""One habit repeated in a file is one finding that names its other places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from pyrometer.rules.finding import Finding

_OWN_TEXT = re.compile(r"`[^`]*`|\d+")
"""What differs between places of one habit: the user's own code, and numbers."""

_MOST_LINES = 8


def skeleton(advice: str) -> str:
    """Advice without what it quotes of the user's program: equal where the same is to be done.

    >>> skeleton("Write `x.sum()` in line 3.") == skeleton("Write `y.mean()` in line 14.")
    True
    """
    return _OWN_TEXT.sub("", advice)


def also_at(places: Sequence[int | str]) -> str:
    """The other places of a habit, as the end of a sentence; empty where there are none.

    >>> also_at([14, 20])
    '; also at lines 14, 20'
    """
    if not places:
        return ""
    shown = ", ".join(map(str, dict.fromkeys(places[:_MOST_LINES])))
    more = f" and {len(places) - _MOST_LINES} more" if len(places) > _MOST_LINES else ""
    return f"; also at line{'s' if len(places) > 1 else ''} {shown}{more}"


def by_habit(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of text alone put together by rule, file and advice; what has a cost of its own stays by itself."""
    kept: list[Finding] = []
    groups: dict[tuple[str | None, ...], list[int]] = {}
    rows: dict[tuple[str | None, ...], int] = {}
    for finding in findings:
        line = finding.where.line
        key = _key(finding)
        if finding.cost is not None or finding.where.file is None or line is None or not _of_text(finding):
            kept.append(finding)
        elif key in rows:
            groups[key].append(line)
        else:
            rows[key], groups[key] = len(kept), []
            kept.append(finding)
    for key, lines in groups.items():
        if lines:
            kept[rows[key]] = _with_places(kept[rows[key]], lines)
    return kept


def _key(finding: Finding) -> tuple[str | None, ...]:
    return finding.code, finding.where.file, finding.severity, skeleton(finding.advice.title)


def _of_text(finding: Finding) -> bool:
    return set(finding.evidence) <= {"hot_because"} and finding.advice.gain is None and not finding.links


def _with_places(finding: Finding, lines: Sequence[int]) -> Finding:
    evidence = {**finding.evidence, "also_at_lines": list(lines)}
    return msgspec.structs.replace(finding, message=f"{finding.message}{also_at(lines)}", evidence=evidence)
