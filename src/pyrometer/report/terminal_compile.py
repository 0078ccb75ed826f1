"""What `pyrometer compile` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from pyrometer.compiler.report import CompileReport
from pyrometer.report import terminal_layout as layout
from pyrometer.report.documents import CompileDocument
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import compile_breaks, surroundings
from pyrometer.report.facts.compile_breaks import Card

MOST_ROWS = 6
"""Rows of each table; the page and the document hold more."""

MOST_BREAKS = 3
"""Breaks that a check prints."""


def compile_view(document: CompileDocument) -> RenderableType:
    """The answer, the breaks with what to write instead, then chapter after chapter."""
    rows: layout.Rows = [("Budget", Text.assemble(("! ", "bold red"), line)) for line in document.over_budget]
    rows += _break_rows(compile_breaks.cards(document.report))
    rows += layout.section_rows(of_compile.document_sections(document), MOST_ROWS)
    if document.environment is not None:
        rows.append(("Machine", Text(surroundings.environment_line(document.environment))))
    if document.run_id is not None:
        rows.append(("Run", Text(f"{document.run_id} · pyrometer show {document.run_id}")))
    return layout.page(
        *layout.head(of_compile.document_headline(document), of_compile.subtitle(document.report)), rows
    )


def compiled_rows(report: CompileReport) -> layout.Rows:
    """What `pyrometer check` prints about torch.compile."""
    told = Group(Text(of_compile.headline(report)), Text(of_compile.subtitle(report), style="dim"))
    return [
        ("Compile", told),
        *_break_rows(compile_breaks.cards(report)[:MOST_BREAKS]),
        *layout.section_rows(of_compile.check_sections(report), MOST_ROWS),
    ]


def _break_rows(cards: Sequence[Card]) -> layout.Rows:
    return [("Break", _card(card)) for card in cards]


def _card(card: Card) -> RenderableType:
    parts: list[RenderableType] = [
        Text.assemble(("! ", "bold yellow"), (card.place, "bold"), "  ", card.title),
        Padding(Text(card.remark, style="dim"), (0, 0, 0, 2)),
    ]
    if card.source:
        parts.append(Padding(Text(card.source, style="cyan"), (0, 0, 0, 4)))
    for rewrite in card.rewrites[:2]:
        parts.append(Padding(Text(f"→ {rewrite.title}: {rewrite.why}"), (0, 0, 0, 2)))
        code = rewrite.after or rewrite.setting
        if code:
            parts.append(Padding(Text(code, style="green"), (0, 0, 0, 4)))
        remark = compile_breaks.EXACTNESS.get(rewrite.exactness, rewrite.exactness)
        if remark:
            parts.append(Padding(Text(remark, style="dim"), (0, 0, 0, 4)))
    return Group(*parts)
