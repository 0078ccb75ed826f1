"""Findings as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyrometer.rules.lint.habits import told
from pyrometer.rules.lint.result import LintFinding, LintResult, OtherPlace
from pyrometer.rules.match import Fix
from pyrometer.rules.registry import find_rule
from pyrometer.rules.rule import Rule
from pyrometer.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_ROOT = "%SRCROOT%"


def sarif_of(result: LintResult) -> dict[str, Any]:
    """One run with the rules that fired; names of files count from where the reader has the sources."""
    codes = sorted({finding.code for finding in result.findings})
    return sarif_document(
        "Pyrometer",
        [_rule(find_rule(code)) for code in codes],
        [_result(finding, codes.index(finding.code)) for finding in result.findings],
        result.failures,
    )


def sarif_document(
    tool: str, rules: list[dict[str, Any]], results: list[dict[str, Any]], failures: Iterable[str]
) -> dict[str, Any]:
    """A document of one run; what failed is in it as well."""
    notifications = [{"level": "error", "message": {"text": failure}} for failure in failures]
    driver = {"name": tool, "version": __version__, "semanticVersion": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": not notifications, "toolExecutionNotifications": notifications}
        ],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.section("What it does") or rule.summary},
        "help": {"text": rule.section("Why it costs") or rule.summary, "markdown": rule.doc.strip()},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family], "fixClass": rule.fix_class},
    }


def _result(finding: LintFinding, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": told(finding) if not finding.advice else f"{told(finding)}\n{finding.advice}"},
        "locations": [_location(finding)],
        "partialFingerprints": {"pyrometer/v1": finding.fingerprint},
    }
    if finding.also:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": place.message}, **_other_location(finding.file, place)}
            for number, place in enumerate(finding.also, 1)
        ]
    if finding.fix is not None and finding.cell is None:
        result["fixes"] = [_fix(finding.file, finding.fix)]
    return result


def _other_location(file: str, place: OtherPlace) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if place.cell is not None:
        cell = {"name": f"cell {place.cell}, line {place.line}", "kind": "element"}
        return {"physicalLocation": physical, "logicalLocations": [cell]}
    physical["region"] = _region(place.line, place.column, place.end_line, place.end_column)
    return {"physicalLocation": physical}


def _location(finding: LintFinding) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(finding.file)}
    if finding.cell is not None:  # a region would mean lines of the notebook's JSON
        cell = {"name": f"cell {finding.cell}, line {finding.line}", "kind": "element"}
        return {"physicalLocation": physical, "logicalLocations": [cell]}
    physical["region"] = _region(finding.line, finding.column, finding.end_line, finding.end_column)
    if (
        len(finding.excerpt) > finding.end_line - finding.line
    ):  # a context has all lines of the region, and whole
        lines = {"startLine": finding.line, "endLine": finding.end_line}
        physical["contextRegion"] = {**lines, "snippet": {"text": "\n".join(finding.excerpt)}}
    return {"physicalLocation": physical}


def _fix(file: str, fix: Fix) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": _region(edit.line, edit.column + 1, edit.end_line, edit.end_column + 1),
            "insertedContent": {"text": edit.text},
        }
        for edit in fix.edits
    ]
    change = {"artifactLocation": _artifact(file), "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change]}


def _artifact(file: str) -> dict[str, Any]:
    if Path(file).is_absolute():
        return {"uri": f"file://{quote(file)}"}
    return {"uri": quote(file), "uriBaseId": _ROOT}


def _region(line: int, column: int, end_line: int, end_column: int) -> dict[str, Any]:
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
