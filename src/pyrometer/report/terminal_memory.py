"""What `pyrometer memory` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from pyrometer.loading.advice import LoaderAdvice
from pyrometer.loading.report import LoaderReport
from pyrometer.memory.advice.record import Advice
from pyrometer.memory.profile import MemoryProfile
from pyrometer.report import terminal_layout as layout
from pyrometer.report.documents import MemoryDocument, SnapshotDocument
from pyrometer.report.facts import loading as of_loading
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import snapshot as of_snapshot
from pyrometer.report.facts import surroundings

MOST_ROWS = 8
"""Rows of each table; the page and the document hold more."""

MOST_ADVICE = 3
"""Pieces of advice that a check prints."""


def memory_view(document: MemoryDocument) -> RenderableType:
    """The answer, the advice, then chapter after chapter."""
    rows: layout.Rows = [("Limit", Text.assemble(("! ", "bold red"), line)) for line in document.over_limit]
    rows += layout.section_rows(of_memory.document_sections(document), MOST_ROWS)
    rows += advice_rows(document.profile.advice)
    if document.environment is not None:
        rows.append(("Machine", Text(surroundings.environment_line(document.environment))))
    if document.run_id is not None:
        rows.append(("Run", Text(f"{document.run_id} · pyrometer show {document.run_id}")))
    return layout.page(
        *layout.head(of_memory.headline(document.profile), of_memory.subtitle(document.profile)), rows
    )


def snapshot_view(document: SnapshotDocument) -> RenderableType:
    """A snapshot: why memory ran out, how it was fragmented, who held it."""
    rows: layout.Rows = [("Limit", Text.assemble(("! ", "bold red"), line)) for line in document.over_limit]
    rows += layout.section_rows(of_snapshot.document_sections(document), MOST_ROWS)
    rows += advice_rows(document.report.advice)
    if document.run_id is not None:
        rows.append(("Run", Text(f"{document.run_id} · pyrometer show {document.run_id}")))
    return layout.page(
        *layout.head(of_snapshot.headline(document.report), of_snapshot.subtitle(document.report)), rows
    )


def loading_rows(report: LoaderReport, *, advised: bool = True) -> layout.Rows:
    """What `check` and `bench` print about how the data arrives; without the advice where findings tell it."""
    return [
        ("Data", Text(of_loading.headline(report))),
        *layout.section_rows(of_loading.sections(report), MOST_ROWS),
        *advice_rows(report.advice if advised else []),
    ]


def memory_rows(profile: MemoryProfile, *, advised: bool = True) -> layout.Rows:
    """What `pyrometer check` prints about memory; without the advice where findings tell it."""
    told = Group(Text(of_memory.headline(profile)), Text(of_memory.subtitle(profile), style="dim"))
    return [
        ("Peak", told),
        *layout.section_rows(of_memory.check_sections(profile), MOST_ROWS),
        *advice_rows(profile.advice[:MOST_ADVICE] if advised else []),
    ]


def advice_rows(advice: Sequence[Advice] | Sequence[LoaderAdvice]) -> layout.Rows:
    """Each piece of advice: what, why, and what to write."""
    return [("Advice", _advice(one)) for one in advice]


def _advice(one: Advice | LoaderAdvice) -> RenderableType:
    return Group(
        Text.assemble(("→ ", "bold yellow"), (one.title, "bold"), of_memory.saving(one)),
        Padding(Text(one.why), (0, 0, 0, 2)),
        Padding(Text(one.use, style="green"), (0, 0, 0, 4)),
        Padding(Text(one.effect, style="dim"), (0, 0, 0, 2)),
    )
