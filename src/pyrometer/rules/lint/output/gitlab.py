"""Findings as a Code Quality report, which GitLab shows in merge requests."""

from __future__ import annotations

import hashlib
from typing import Any

from pyrometer.rules.lint.habits import told
from pyrometer.rules.lint.result import LintFinding, LintResult

_SEVERITIES = {"error": "critical", "warning": "major", "info": "minor"}


def gitlab_of(result: LintResult) -> list[dict[str, Any]]:
    """One object per finding; lines of a notebook count within its cell, which the description names."""
    return [_finding(finding) for finding in result.findings]


def _finding(finding: LintFinding) -> dict[str, Any]:
    cell = "" if finding.cell is None else f"cell {finding.cell}: "
    return {
        "description": f"{finding.code} {finding.name}: {cell}{told(finding)}",
        "check_name": finding.code,
        # GitLab takes what has the same fingerprint for the same finding, in whichever file it stands.
        "fingerprint": hashlib.sha256(f"{finding.file}\n{finding.fingerprint}".encode()).hexdigest(),
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": finding.file,
            "positions": {
                "begin": {"line": finding.line, "column": finding.column},
                "end": {"line": finding.end_line, "column": finding.end_column},
            },
        },
    }
