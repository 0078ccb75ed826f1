"""Findings as editors show them by the Language Server Protocol: diagnostics, code actions, hovers.

The only module of linting that needs `lsprotocol` and `pygls`; the server imports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from pyrometer.rules.lint.fixing import EXACT, Finder, edited, fix_text
from pyrometer.rules.lint.result import LintFinding
from pyrometer.rules.registry import rules
from pyrometer.rules.rule import Rule
from pyrometer.source.edit import Edit
from pyrometer.source.lines import split_lines

FIX_ALL = "source.fixAll.pyrometer"
_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
_CODE = re.compile(r"\bPYR[0-9]{3}\b")


class OpenFile(NamedTuple):
    """One text in an editor, and what was found in it.

    Attributes:
        uri: its name, as the editor has it.
        text: the whole text.
        findings: in it.
        find: looks for what can be fixed in a later state of the text.
        codec: counts columns as the editor does.
    """

    uri: str
    text: str
    findings: Sequence[LintFinding]
    find: Finder
    codec: PositionCodec

    def diagnostics(self) -> list[lsp.Diagnostic]:
        """One per finding, in the order of the text."""
        lines = split_lines(self.text)
        return [self._diagnostic(finding, lines) for finding in self.findings]

    def actions(self, asked: lsp.Range, only: Sequence[str] | None) -> list[lsp.CodeAction]:
        """The fixes of a range, exact ones preferred, others marked; and one action for all exact fixes of the file.

        Args:
            asked: where the editor asks.
            only: kinds that it wants; None for all.
        """
        actions: list[lsp.CodeAction] = []
        if _wants(lsp.CodeActionKind.QuickFix.value, only):
            actions += self._quick_fixes(asked)
        if _wants(FIX_ALL, only):
            actions += self._fix_all()
        return actions

    def hover(self, position: lsp.Position) -> lsp.Hover | None:
        """What the rule under the cursor means: that of a code in a comment, or of a finding; None where there is neither."""
        lines = split_lines(self.text)
        line = lines[position.line] if position.line < len(lines) else ""
        for code in _CODE.finditer(line):
            where = self._range(position.line, code.start(), position.line, code.end(), lines)
            if _holds(where, position) and (rule := _rule(code[0])):
                return _hover(f"**{rule.code}** {rule.name}", rule, where)
        for diagnostic in self.diagnostics():
            if _holds(diagnostic.range, position):
                said = f"**{diagnostic.code}** {diagnostic.message}"
                return _hover(said, _rule(str(diagnostic.code)), diagnostic.range)
        return None

    def _diagnostic(self, finding: LintFinding, lines: Sequence[str]) -> lsp.Diagnostic:
        advice = f"\n{finding.advice}" if finding.advice else ""
        return lsp.Diagnostic(
            range=self._range(
                finding.line - 1, finding.column - 1, finding.end_line - 1, finding.end_column - 1, lines
            ),
            message=f"{finding.name}: {finding.message}{advice}",
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            source="pyrometer",
        )

    def _quick_fixes(self, asked: lsp.Range) -> Iterator[lsp.CodeAction]:
        for finding, diagnostic in zip(self.findings, self.diagnostics(), strict=True):
            fix = finding.fix
            if fix is None or not _touch(diagnostic.range, asked) or edited(self.text, fix.edits) is None:
                continue
            exact = fix.fix_class in EXACT
            yield lsp.CodeAction(
                title=f"{finding.code}: {fix.title}{'' if exact else f' (unsafe: {fix.fix_class})'}",
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=exact,
                edit=self._workspace_edit(fix.edits),
            )

    def _fix_all(self) -> Iterator[lsp.CodeAction]:
        if not any(finding.fix is not None and finding.fix.fix_class in EXACT for finding in self.findings):
            return
        fixed = fix_text(self.text, self.find, EXACT)
        if fixed.text != self.text:
            lines = split_lines(self.text)
            last = len(lines) - 1
            whole = Edit(line=1, column=0, end_line=last + 1, end_column=len(lines[last]), text=fixed.text)
            yield lsp.CodeAction(
                title="Pyrometer: apply all fixes that change no result",
                kind=FIX_ALL,
                edit=self._workspace_edit([whole]),
            )

    def _workspace_edit(self, edits: Iterable[Edit]) -> lsp.WorkspaceEdit:
        lines = split_lines(self.text)
        changes = [
            lsp.TextEdit(
                self._range(one.line - 1, one.column, one.end_line - 1, one.end_column, lines), one.text
            )
            for one in edits
        ]
        return lsp.WorkspaceEdit(changes={self.uri: changes})

    def _range(
        self, line: int, column: int, end_line: int, end_column: int, lines: Sequence[str]
    ) -> lsp.Range:
        """A range from lines and characters from 0, in the columns of the editor."""
        positions = [lsp.Position(line, column), lsp.Position(end_line, end_column)]
        return lsp.Range(*(self.codec.position_to_client_units(lines, position) for position in positions))


def _wants(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in only)


def _holds(where: lsp.Range, position: lsp.Position) -> bool:
    return where.start <= position <= where.end


def _touch(one: lsp.Range, other: lsp.Range) -> bool:
    """Whether ranges share a line: an editor asks where its cursor is, which may be anywhere on it."""
    return one.start.line <= other.end.line and other.start.line <= one.end.line


def _rule(code: str) -> Rule | None:
    return next((rule for rule in rules() if rule.code == code), None)


def _hover(said: str, rule: Rule | None, where: lsp.Range) -> lsp.Hover:
    doc = "" if rule is None else f"\n\n---\n\n{rule.doc.strip()}"
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, said + doc), where)
