"""Documents on a terminal: the short answer, or the answer and then a row per chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.quality import Caveat, CaveatCode
from pyrometer.bench.record import Soak
from pyrometer.quantity import format_seconds
from pyrometer.report.answer.documents import short_answer
from pyrometer.report.answer.lines import Screen
from pyrometer.report.chapters import chapter as shapes
from pyrometer.report.chapters.chapter import Chapter, Told
from pyrometer.report.chapters.documents import tell, tell_stored
from pyrometer.report.charts.bins import bin_count, count_bins
from pyrometer.report.charts.forest import ratio_scale
from pyrometer.report.charts.scale import fit
from pyrometer.report.documents import CheckDocument, Document
from pyrometer.report.facts import compile_breaks
from pyrometer.report.facts import trace_gains as of_gains
from pyrometer.report.facts.findings import Card, stands_alone, trial_text
from pyrometer.report.facts.layout import Fact, Table, percent, shortened
from pyrometer.report.facts.memory import saving
from pyrometer.report.glyphs import Flow, Portable, ShareBar, interval_line, phase_mark, sparkline
from pyrometer.report.kinds import read_document
from pyrometer.series import thinned
from pyrometer.trace.records.gains import WhatIf

if TYPE_CHECKING:
    import polars as pl  # what is stored is shown without it

AXIS_CELLS = 50
FEWEST_CELLS = 12
"""Of a first column that gives way."""

MOST_ROWS = 8
"""Rows of a table; the page and the document hold more."""

MOST_CARDS = 5
"""Findings that are printed in full, and pieces of advice."""

LITTLE = 24
"""Characters that stand behind an answer rather than below it."""

MOST_LINES = 12
"""Findings that are printed in a line."""

STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}
MARKS = {"error": "!! ", "warning": "→ ", "info": "· "}
TONES = {
    "faster": "bold green", "slower": "bold red", "undecided": "bold yellow", "fine": "green", "look": "yellow", "bad": "bold red",
    "pass": "green", "fail": "bold red", "unknown": "yellow", "not applicable": "dim",
}  # fmt: skip
"""How what stands well or not is coloured."""


def render_document(kind: str, document: dict[str, Any], *, brief: bool = False) -> RenderableType:
    """Render a stored document, whole or the short answer of those that have one.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    answer = short_answer(read_document(kind, document)) if brief else None
    return _laid_out(tell_stored(kind, document)) if answer is None else Screen(answer)


def view(document: Document, *, brief: bool = True, page: str | None = None) -> RenderableType:
    """What a verb prints: the short answer or all, and where it is kept.

    Args:
        document: what it found.
        brief: only what fits a screen, of kinds that have more.
        page: where its page was written, if it was.
    """
    answer = short_answer(document, page) if brief else None
    if answer is not None:
        return Screen(answer)
    kept: list[tuple[str, RenderableType]] = []
    report = page or (document.report_path if isinstance(document, CheckDocument) else None)
    if report is not None:
        kept.append(("Report", Text(report)))
    if document.run_id is not None:
        kept.append(("Run", Text(f"{document.run_id} · pyrometer show {document.run_id}")))
    return _laid_out(tell(document), kept)


def frame_view(frame: pl.DataFrame) -> RenderableType:
    """The answer to a query, whole."""
    rows = [tuple("" if cell is None else str(cell) for cell in row) for row in frame.iter_rows()]
    words = frozenset(i for i, dtype in enumerate(frame.dtypes) if not dtype.is_numeric())
    return Portable(_Columns(Table(tuple(frame.columns), rows, words)))


def what_if_view(what_if: WhatIf) -> RenderableType:
    """A prediction in one line, and what it rests on."""
    answer = shapes.Answer(of_gains.headline(what_if), of_gains.subtitle(what_if))
    notes = [shapes.Text(note) for note in [what_if.method, *what_if.notes]]
    return _laid_out(Told(answer, [Chapter("note", "", notes)]))


def _laid_out(told: Told, kept: Sequence[tuple[str, RenderableType]] = ()) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(ratio=1)
    for chapter in told.chapters:
        if any(not isinstance(block, LINES) for block in chapter.blocks):
            grid.add_row()
        lead = [Text(said, style="dim") for said in chapter.lead]
        says = [Text(chapter.says)] if chapter.says else []
        grid.add_row(
            label(chapter),
            Group(*says, *lead, *(LAYOUTS[type(block)](block) for block in chapter.blocks)),
        )
    for where in kept:
        grid.add_row(*where)
    return Portable(Group(*_head(told.answer), grid))


def label(chapter: Chapter) -> str:
    """What stands before a chapter, in a few characters."""
    if chapter.rank:
        return chapter.title if chapter.place == "part" else chapter.slug.capitalize()
    return chapter.label or chapter.slug.capitalize()


def _head(answer: shapes.Answer) -> list[RenderableType]:
    bound = [Text(answer.bound)] if answer.bound else []
    cautions = [Text(f"! {caution}", style="yellow") for caution in answer.cautions]
    headline = _flow(answer.headline, TONES.get(answer.tone, "bold"))
    return [headline, *bound, *([_flow(answer.subtitle, "dim")] if answer.subtitle else []), *cautions]


def _flow(text: str, style: str) -> RenderableType:
    """A line that is broken only between its parts."""
    return Flow([Text(part) for part in text.split(" · ")], style)


def _facts(facts: Sequence[Fact], *, apart: bool = False) -> RenderableType:
    lines = [Text.assemble((f"{fact.label} ", "dim"), fact.line) for fact in facts]
    return Group(*lines) if apart else Flow(lines)


class _Columns:
    """A table whose first column gives way as long as the others, which are figures, stay whole beside it."""

    def __init__(self, content: Table) -> None:
        self.content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [
            [row[i] for row in (self.content.columns, *self.content.rows)]
            for i in range(1, len(self.content.columns))
        ]
        figures = sum(max(map(cell_len, column)) + 2 for column in columns)
        is_whole = not self.content.words and FEWEST_CELLS + 2 + figures <= options.max_width
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(min_width=FEWEST_CELLS if is_whole else None)
        for index in range(1, len(self.content.columns)):
            grid.add_column(justify="left" if index in self.content.words else "right", no_wrap=is_whole)
        grid.add_row(*[Text(column, style="dim") for column in self.content.columns])
        for row in self.content.rows:
            grid.add_row(*map(Text, row))
        yield grid


def _rows(block: shapes.Rows) -> RenderableType:
    return _Columns(block.table if block.is_whole else shortened(block.table, MOST_ROWS))


def _shares(block: shapes.Shares) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    for _ in range(2):
        grid.add_column(justify="right")
    for part in block.shares:
        mark, colour = phase_mark(part.slot)
        name = Text.assemble((mark, colour), " ", part.name)
        grid.add_row(name, Text(percent(part.share)), Text(part.said))
    bar = ShareBar([part.share for part in block.shares], [part.slot for part in block.shares])
    return Group(bar, grid, *([_facts([block.in_all])] if block.in_all is not None else []))


def _histogram(m: Measurement) -> RenderableType:
    samples = [sample for sample in m.samples_s if sample > 0]
    if len(samples) < 8:
        return Group()
    scale = fit(samples, pad=0, log_above=4)
    bins = min(bin_count(samples, scale), AXIS_CELLS)
    line = sparkline(count_bins(samples, scale.edges(bins)))
    axis = ", logarithmic" if scale.log else ""
    return Text(f"{format_seconds(min(samples))} {line} {format_seconds(max(samples))}{axis}")


def _forest(v: Verdict) -> RenderableType:
    scale = ratio_scale(v)
    values = {"estimate": v.ratio, "one": 1.0, "margin_low": 1 - v.margin, "margin_high": 1 + v.margin}
    values["low"] = v.ratio if v.ci_low is None else v.ci_low
    values["high"] = v.ratio if v.ci_high is None else v.ci_high
    line = interval_line({name: scale(value) for name, value in values.items()}, AXIS_CELLS)
    return Text(f"faster {line} slower")


def _windows(soak: Soak) -> RenderableType:
    windows = [soak.windows[i] for i in thinned(len(soak.windows), AXIS_CELLS)]
    line = sparkline([round(window.p50_s * 1e9) for window in windows])
    return Text(f"median step by window {line}")


DRAWINGS: Mapping[str, Callable[[Any], RenderableType]] = MappingProxyType(
    {"forest": _forest, "histogram": _histogram, "windows": _windows}
)
"""Drawings that a line of characters can hold."""


def _chart(block: shapes.Chart) -> RenderableType:
    draw = DRAWINGS.get(block.name)
    return Group() if draw is None else draw(block.record)


def _caveats(block: shapes.Caveats) -> RenderableType:
    if not block.caveats:
        return Text(block.trust) if block.trust else Group()
    return Group(*map(_caveat, block.caveats))


def _caveat(caveat: Caveat) -> RenderableType:
    style = "bold red" if caveat.code == CaveatCode.FAILED.value else "bold yellow"
    return Group(
        Text.assemble(("! ", style), caveat.message), Padding(Text(f"→ {caveat.advice.title}"), (0, 0, 0, 2))
    )


def _answers(block: shapes.Answers) -> RenderableType:
    """Each row as its name, how it stands, coloured, and all else that it says."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(max_width=40)
    grid.add_column(ratio=1)
    for (name, standing, said, more), tone in zip(block.table.rows, block.tones, strict=True):
        answer = Text.assemble((f"{standing}: " if standing else "", TONES.get(tone, "")), said)
        if len(more) <= LITTLE:
            grid.add_row(Text(name), answer.append(f" {more}".rstrip(), "dim"))
        else:
            grid.add_row(Text(name), Group(answer, Text(more, style="dim")))
    return grid


def _findings(block: shapes.FindingCards) -> RenderableType:
    """What is worth acting on in full; remarks, and what counts the same cost again, in a line each."""
    cards = [view.card for view in block.views]
    full = [card for card in cards if stands_alone(card.finding)][:MOST_CARDS]
    rest = [card for card in cards if card not in full]
    first = [_caveat(block.first)] if block.first is not None else []
    return Group(*first, *map(_finding, full), *([_lines(rest)] if rest else []))


def _finding(card: Card) -> RenderableType:
    finding = card.finding
    mark = (MARKS[finding.severity], STYLES[finding.severity])
    head = Text.assemble(mark, (card.title, "bold"), (f"  {card.gain}", "green") if card.gain else "")
    parts = [_indented(finding.message)]
    parts += [_indented(f"at {card.place}", "cyan")] if card.place else []
    parts.append(_indented(finding.advice.text))
    parts += [_indented(tried, "bold")] if (tried := trial_text(finding)) else []
    parts += [_indented(finding.advice.code, "green", 4)] if finding.advice.code else []
    return Group(head, *parts)


def _lines(cards: Sequence[Card]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for card in cards[:MOST_LINES]:
        finding = card.finding
        mark = Text(MARKS[finding.severity], style=STYLES[finding.severity])
        same = f"as {finding.overlaps[0]}" if finding.overlaps else card.gain
        if finding.trial is not None:
            same = f"tried: {finding.trial.outcome}"
        grid.add_row(Text.assemble(mark, card.title), Text(card.place, style="dim"), Text(same, style="dim"))
    if len(cards) > MOST_LINES:
        grid.add_row(Text(f"  and {len(cards) - MOST_LINES} more in the report", style="dim"))
    return grid


def _advice(block: shapes.AdviceCards) -> RenderableType:
    parts: list[RenderableType] = []
    for advice in block.advice[:MOST_CARDS]:
        parts.append(Text.assemble(("→ ", "bold yellow"), (advice.title, "bold"), saving(advice)))
        parts += [_indented(advice.why), _indented(advice.code or "", "green", 4)]
        parts.append(_indented(advice.effect, "dim"))
    return Group(*parts)


def _breaks(block: shapes.BreakCards) -> RenderableType:
    return Group(*map(_break, block.cards))


def _break(card: compile_breaks.Card) -> RenderableType:
    parts: list[RenderableType] = [
        Text.assemble(("! ", "bold yellow"), (card.place, "bold"), "  ", card.title),
        _indented(card.remark, "dim"),
    ]
    parts += [_indented(card.source, "cyan", 4)] if card.source else []
    for rewrite in card.rewrites[:2]:
        parts.append(_indented(f"→ {rewrite.title}: {rewrite.why}"))
        parts += [_indented(rewrite.rewrite, "green", 4)] if rewrite.rewrite else []
        remark = compile_breaks.EXACTNESS[rewrite.fix_class]
        parts += [_indented(remark, "dim", 4)] if remark else []
    return Group(*parts)


def _heat(block: shapes.Heat) -> RenderableType:
    rows = [
        (name, *(f"{cell.figure} {cell.note}".strip() for cell in cells)) for name, cells in block.heat.rows
    ]
    return _Columns(Table(("", *block.heat.across), rows))


def _indented(text: str, style: str = "", cells: int = 2) -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, cells))


LAYOUTS: Mapping[type, Callable[[Any], RenderableType]] = MappingProxyType({
    shapes.AdviceCards: _advice,
    shapes.Alerts: lambda block: Group(*(Text.assemble(("! ", "bold red"), line) for line in block.lines)),
    shapes.Answers: _answers,
    shapes.BreakCards: _breaks,
    shapes.Caveats: _caveats,
    shapes.Chart: _chart,
    shapes.Code: lambda block: Text(block.text, style="green"),
    shapes.Facts: lambda block: _facts(block.facts, apart=block.has_prose),
    shapes.Figures: lambda block: _facts(block.facts),
    shapes.FindingCards: _findings,
    shapes.Heat: _heat,
    shapes.Machine: lambda block: Text(block.line),
    shapes.Rows: _rows,
    shapes.Shares: _shares,
    shapes.Text: lambda block: Text(block.text, style="dim"),
})  # fmt: skip
"""How each type of block is laid out."""

LINES = (
    shapes.Facts,
    shapes.Figures,
    shapes.Machine,
    shapes.Text,
    shapes.Caveats,
    shapes.Code,
    shapes.Alerts,
)
"""Blocks of few lines: a chapter of nothing else stands close to the one before."""
