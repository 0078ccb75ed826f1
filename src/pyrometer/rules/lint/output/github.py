"""Findings as workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from pyrometer.rules.lint.habits import told
from pyrometer.rules.lint.result import LintFinding, LintResult

_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def github_of(result: LintResult) -> str:
    """One command per finding."""
    return "".join(f"{_command(finding)}\n" for finding in result.findings)


def _command(finding: LintFinding) -> str:
    # GitHub knows lines of files only, not of cells; the message says which cell.
    cell = "" if finding.cell is None else f"cell {finding.cell}, line {finding.line}: "
    place: dict[str, object] = {"file": finding.file}
    if finding.cell is None:
        place |= {"line": finding.line, "endLine": finding.end_line}
        if finding.end_line == finding.line:  # columns of more than one line are refused
            place |= {"col": finding.column, "endColumn": finding.end_column}
    place["title"] = f"{finding.code} {finding.name}"
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in place.items())
    return f"::{_LEVELS[finding.severity]} {properties}::{_data(cell + told(finding))}"


def _data(text: str) -> str:
    r"""Escape a message.

    >>> _data("100% of\nall")
    '100%25 of%0Aall'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
