"""How results are laid out on a terminal: a headline, then rows with a label each, of facts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.report.glyphs import Flow, Portable

OPENING = {
    *(
        "Apart",
        "Peaks",
        "Step",
        "Latency",
        "Ratio",
        "Cold",
        "Starts",
        "Soak",
        "Cells",
        "Tails",
        "Costs",
        "Rejected",
    ),
    *(
        "Tried",
        "Skipped",
        "Recompiles",
        "Limits",
        "Evaluation",
        "Modes",
        "Compiling",
        "Levers",
        "Runtime",
        "Guards",
        "Compilations",
        "Graphs",
    ),
    *("Fusions", "Apart", "Passes", "Caches", "Code", "Unknown", "Break", "Shapes", "Difference", "Compile"),
    *("Quality", "Script", "Machine", "Note"),
    *(
        "Limit",
        "Ledger",
        "Leak",
        "Held",
        "Scaling",
        "Fits",
        "Formulas",
        "Levels",
        "Predicted",
        "Advice",
        "Peak",
    ),
    *(
        "Breakdown",
        "Gains",
        "Health",
        "Steps",
        "Path",
        "Phases",
        "Lines",
        "Modules",
        "Operators",
        "Idle",
        "Gaps",
    ),
    *("Sync", "Launches", "Kernels", "Copies", "Collectives", "Roofline", "Allocations", "Capture"),
    *("Findings", "Reading", "Score"),
    *("Ranks", "Stragglers", "Matched", "Pipeline", "Evidence", "Parts", "Nodes", "Groups"),
}
"""Rows with a blank line above."""

Rows = list[tuple[str, RenderableType]]


def page(headline: RenderableType, subtitle: RenderableType, rows: Rows) -> RenderableType:
    """The whole: the answer, what it rests on, and a row per part."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(ratio=1)
    for label, content in rows:
        if label in OPENING:
            grid.add_row()
        grid.add_row(label, content)
    return Portable(Group(headline, subtitle, grid))


def head(headline: str, subtitle: str, style: str = "bold") -> tuple[RenderableType, RenderableType]:
    """Headline and subtitle, ready to be laid out."""
    return flow(headline, style), flow(subtitle, "dim")


def flow(text: str, style: str) -> RenderableType:
    """A line that is broken only between its parts."""
    return Flow([Text(part) for part in text.split(" · ")], style)


def facts(told: Sequence[Fact]) -> RenderableType:
    """Facts one behind the other, each kept together."""
    return Flow([Text.assemble((f"{fact.label} ", "dim"), fact.line) for fact in told])


def cell_table(content: Table) -> RenderableType:
    """A table whose first column gives way, so that the figures stay whole."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=12)
    for _ in content.columns[1:]:
        grid.add_column(justify="right", no_wrap=True)
    _fill(grid, content)
    return grid


def table(content: Table, justify: Literal["left", "right"] = "right") -> RenderableType:
    """A table; the first column holds names."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    for index in range(1, len(content.columns)):
        grid.add_column(justify="left" if index in content.words else justify)
    _fill(grid, content)
    return grid


def _fill(grid: Grid, table: Table) -> None:
    grid.add_row(*[Text(column, style="dim") for column in table.columns])
    for row in table.rows:
        grid.add_row(*[Text(cell) for cell in row])


def section_rows(sections: Sequence[Section], most_rows: int) -> Rows:
    """Chapters, each labelled with its slug, their tables with at most so many rows."""
    return [(section.slug.capitalize(), _section(section.shortened(most_rows))) for section in sections]


def _section(section: Section) -> RenderableType:
    parts: list[RenderableType] = []
    if section.has_prose:
        parts += [Text.assemble((f"{fact.label} ", "dim"), fact.line) for fact in section.facts]
    elif section.facts:
        parts.append(facts(section.facts))
    if section.table is not None:
        parts.append(table(section.table))
    return Group(*parts)
