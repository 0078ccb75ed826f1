"""Findings as people and programs read them: places in the file, excerpts, fingerprints."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from pyrometer.place import Place
from pyrometer.rules.finding import Suppressed
from pyrometer.rules.lint.check import Checked, Found
from pyrometer.rules.lint.document import Document
from pyrometer.rules.lint.result import FileResult, LintFinding
from pyrometer.rules.match import Fix
from pyrometer.source.edit import Edit
from pyrometer.source.module import Module

_EXCERPT_LINES = 4
_EXCERPT_WIDTH = 300  # lines of generated code are longer than anyone reads


def present(shown: str, document: Document, checked: Checked) -> FileResult:
    """What one file gave, in its own lines and cells."""
    module = checked.module
    seen: Counter[str] = Counter()
    findings = []
    scopes = _scopes(module)
    for hit in checked.found:
        print_ = _fingerprint(module, hit, scopes)
        findings.append(_finding(shown, document, hit, module.lines, f"{print_}:{seen[print_]}"))
        seen[print_] += 1
    suppressed = [
        Suppressed(
            code=hit.rule.code,
            name=hit.rule.name,
            where=Place(file=shown, line=document.cell_line(hit.match.line).line),
            reason=ignore.reason,
            by="comment",
        )
        for hit, ignore in checked.ignored
    ]
    return FileResult(
        file=shown,
        findings=findings,
        suppressed=suppressed,
        failures=checked.failures,
        num_lines=len(module.lines),
        looked_at=module.imports_torch,
    )


def _finding(
    shown: str, document: Document, hit: Found, lines: Sequence[str], fingerprint: str
) -> LintFinding:
    rule, match = hit
    cell, line = document.cell_line(match.line)
    shift = line - match.line
    return LintFinding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        file=shown,
        cell=cell,
        line=line,
        column=match.column + 1,
        end_line=match.end_line + shift,
        end_column=match.end_column + 1,
        message=match.message,
        advice=match.advice,
        hot=match.hot,
        confidence=match.confidence,
        fix=match.fix if match.fix is None or not shift else _shifted(match.fix, shift),
        fingerprint=fingerprint,
        excerpt=_excerpt(lines, match.line, match.end_line),
    )


def _shifted(fix: Fix, shift: int) -> Fix:
    return msgspec.structs.replace(fix, edits=[_moved(edit, shift) for edit in fix.edits])


def _moved(edit: Edit, shift: int) -> Edit:
    return msgspec.structs.replace(edit, line=edit.line + shift, end_line=edit.end_line + shift)


def _excerpt(lines: Sequence[str], first: int, last: int) -> list[str]:
    return [line[:_EXCERPT_WIDTH] for line in lines[first - 1 : min(last, first - 1 + _EXCERPT_LINES)]]


def _fingerprint(module: Module, hit: Found, scopes: Sequence[str]) -> str:
    """Of the rule, the function around, and the text of the line without its indentation and comment."""
    line = module.lines[hit.match.line - 1]
    text = " ".join(line.partition("  #")[0].split())
    whole = "\n".join((hit.rule.code, scopes[hit.match.line], text))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _scopes(module: Module) -> list[str]:
    """By line, the dotted name of the classes and functions around it."""
    names = [""] * (len(module.lines) + 1)
    for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):  # outer ones come first
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            names[line] = f"{names[line]}.{node.name}" if names[line] else node.name
    return names
