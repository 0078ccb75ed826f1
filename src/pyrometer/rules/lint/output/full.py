"""Findings with the code that they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.rules.lint.habits import told
from pyrometer.rules.lint.output.text import mark_of
from pyrometer.rules.lint.result import LintFinding, LintResult

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLOURS = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
_TAB = "    "
_FILE_WIDTH = 200


def full_view(result: LintResult) -> RenderableType:
    """All findings, each with its lines, the place underlined, and what to do."""
    from rich.console import Group

    return Group(*(_view(finding) for finding in result.findings))


def plain_text(result: LintResult) -> str:
    """The same without colours, for a file."""
    import io

    from rich.console import Console

    written = io.StringIO()
    Console(file=written, width=_FILE_WIDTH, highlight=False).print(full_view(result))
    return "".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines())


def _view(finding: LintFinding) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble(
        (finding.code, _COLOURS[finding.severity]),
        " ",
        (finding.name, "bold"),
        f": {told(finding)}",
        (f" {mark_of(finding)}" if finding.fixes else "", "dim"),
    )
    place = Text.assemble(("  --> ", "dim"), finding.place)
    width = len(str(finding.line + len(finding.excerpt)))
    code = [_code_line(finding, offset, width) for offset in range(len(finding.excerpt))]
    underline = [_underline(finding, width)] if finding.excerpt else []
    notes = [
        Text.assemble((f"{' ' * width} = ", "dim"), (f"{kind}: ", "bold"), said)
        for kind, said in (
            ("hot because", finding.hot),
            ("advice", finding.advice),
            ("fix", finding.fix.title if finding.fix is not None else None),
        )
        if said
    ]
    return Group(head, place, *code[:1], *underline, *code[1:], *notes, Text())


def _code_line(finding: LintFinding, offset: int, width: int) -> RenderableType:
    from rich.syntax import Syntax
    from rich.text import Text

    source = finding.excerpt[offset].replace("\t", _TAB)
    line = Text.assemble((f"{finding.line + offset:>{width}} | ", "dim"))
    line.append_text(Syntax("", "python", theme="ansi_dark", background_color="default").highlight(source))
    line.rstrip()
    return line


def _underline(finding: LintFinding, width: int) -> RenderableType:
    """Carets below the first line of the place."""
    from rich.cells import cell_len
    from rich.text import Text

    first = finding.excerpt[0]
    end = finding.end_column - 1 if finding.end_line == finding.line else len(first.rstrip())
    before = cell_len(first[: finding.column - 1].replace("\t", _TAB))
    marked = max(1, cell_len(first[finding.column - 1 : end].replace("\t", _TAB)))
    return Text.assemble(
        (f"{' ' * width} | ", "dim"), " " * before, ("^" * marked, _COLOURS[finding.severity])
    )
