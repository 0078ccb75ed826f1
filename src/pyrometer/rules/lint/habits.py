"""One habit repeated in a file as one finding, for people and programs that read a list.

Comments, baselines and fixes go by places; this is the last step before a list is shown.
"""

from __future__ import annotations

import msgspec

from pyrometer.rules.habits import also_at, skeleton
from pyrometer.rules.lint.result import LintFinding, LintResult, OtherPlace


def grouped(result: LintResult) -> LintResult:
    """The same result with the findings of a file that ask for the same change told at the first of their places."""
    first: dict[tuple[str, ...], int] = {}
    also: dict[int, list[OtherPlace]] = {}
    findings: list[LintFinding] = []
    for finding in result.findings:
        row = first.setdefault(
            (finding.file, finding.code, finding.severity, skeleton(finding.advice)), len(findings)
        )
        if row == len(findings):
            findings.append(finding)
        else:
            also.setdefault(row, []).append(msgspec.convert(finding, OtherPlace, from_attributes=True))
    for row, places in also.items():
        findings[row] = msgspec.structs.replace(findings[row], also=places)
    return msgspec.structs.replace(result, findings=findings)


def told(finding: LintFinding) -> str:
    """The message with the other places of the habit."""
    places = [
        place.line if place.cell is None else f"cell {place.cell}:{place.line}" for place in finding.also
    ]
    return f"{finding.message}{also_at(places)}"
