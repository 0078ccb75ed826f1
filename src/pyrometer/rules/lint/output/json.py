"""Findings as JSON: a list that programs can rely on; fields may be added, none changes its meaning."""

from __future__ import annotations

from typing import Any

from pyrometer.rules.lint.result import LintFinding, LintResult, OtherPlace
from pyrometer.rules.match import Fix
from pyrometer.source.edit import Edit


def json_of(result: LintResult) -> list[dict[str, Any]]:
    """One object per finding; lines and columns count from 1, columns in characters, ends are behind the last one.

    In a notebook `cell` is the cell's number and lines count within it; elsewhere it is null. `also` lists the other places of
    the file that ask for the same change.
    """
    return [_finding(finding) for finding in result.findings]


def _finding(finding: LintFinding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "file": finding.file,
        "cell": finding.cell,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        "message": finding.message,
        "advice": finding.advice,
        "confidence": finding.confidence,
        "fingerprint": finding.fingerprint,
        "fix": _fix(finding.fix),
        "also": [_place(place) for place in finding.also],
    }


def _place(place: OtherPlace) -> dict[str, Any]:
    return {
        "cell": place.cell,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "message": place.message,
        "fingerprint": place.fingerprint,
        "fix": _fix(place.fix),
    }


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    return {"class": fix.fix_class, "title": fix.title, "edits": [_edit(edit) for edit in fix.edits]}


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "line": edit.line,
        "column": edit.column + 1,
        "end_line": edit.end_line,
        "end_column": edit.end_column + 1,
        "text": edit.text,
    }
