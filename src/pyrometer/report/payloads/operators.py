"""What a page lists of operators, kernels, source lines and modules: `operators/<rank>` is an `OperatorTables`.

Complete where the trace's tables are among the attachments, else what the document holds of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec

from pyrometer.record import Record, doc
from pyrometer.report.attachments import MOST_RANKS, Attachments
from pyrometer.report.documents import CheckDocument, Document, TraceDocument
from pyrometer.report.facts.layout import percent
from pyrometer.report.facts.trace_document import ordered_ranks
from pyrometer.report.facts.trace_words import ns
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting.rank_report import MOST_ROWS
from pyrometer.trace.view.table_record import (
    CopyColumns,
    GapColumns,
    KernelColumns,
    LineColumns,
    ModuleColumns,
    OperatorColumns,
    ShapeColumns,
    TraceTables,
)
from pyrometer.trace.view.tables import gap_columns, place_text

C = TypeVar("C", bound=Record)


class OperatorTables(Record, frozen=True, kw_only=True):
    """The tables of one rank."""

    tables: TraceTables
    notes: Annotated[dict[str, str], doc("sums of a table, by its name, in a sentence")] = {}
    notice: Annotated[str | None, doc("what is not listed, and where it is; null when everything is")] = None


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """A block per rank that has any table; of two recordings of one rank the first."""
    reports = {report.rank: report for report in reversed(reports_of(document))}
    for tables, notice in rank_tables(document, attachments):
        trace_tables = msgspec.structs.replace(tables, gaps=GapColumns())  # they stand on a page of their own
        if any(getattr(trace_tables, name).num_listed for name in _LISTED):
            yield block_of(
                f"operators/{tables.rank}",
                OperatorTables(tables=trace_tables, notes=_notes(reports.get(tables.rank)), notice=notice),
            )


def rank_tables(document: Document, attachments: Attachments) -> Iterator[tuple[TraceTables, str | None]]:
    """The tables of each rank, and what they leave out: those of the attachments, then those of the document."""
    if isinstance(document, TraceDocument) and document.diff is not None:
        return  # two recordings beside each other are shown by what differs
    seen: set[int] = set()
    for tables in attachments.tables:
        if tables.rank not in seen:
            seen.add(tables.rank)
            yield tables, _cut(tables)
    for report in reports_of(document)[:MOST_RANKS]:
        if report.rank not in seen:
            seen.add(report.rank)
            yield tables_of_report(report), FROM_REPORT


def reports_of(document: Document) -> list[RankReport]:
    """The ranks that a document reports on, the one that its answer is about first."""
    if isinstance(document, TraceDocument):
        return [] if document.diff is not None else ordered_ranks(document)
    if isinstance(document, CheckDocument) and document.evidence.trace is not None:
        return [document.evidence.trace]
    return []


def _notes(report: RankReport | None) -> dict[str, str]:
    if report is None or not report.kernels.calls:
        return {}
    summary, span = report.kernels, max(report.span_ns, 1)
    sums = (
        f"{summary.calls:,} kernels, {summary.num_kernels:,} different; running for {ns(report.kernel_busy_ns)}, "
        f"{percent(report.kernel_busy_ns / span)} of the span; the median one takes {ns(summary.median_ns)}"
    )
    share = percent(summary.tensor_core_ns / max(summary.total_ns, 1))
    return {
        "kernels": f"{sums}; {share} of kernel time on tensor cores."
        if summary.tensor_core_ns
        else f"{sums}."
    }


FROM_REPORT = (
    f"The {MOST_ROWS} largest of each are listed: that is what the document keeps. Write the page from the trace itself, "
    "or show a stored run, to list all."
)

_LISTED = ("operators", "shapes", "kernels", "lines", "modules", "copies")


def _cut(tables: TraceTables) -> str | None:
    cut = [
        f"{found.num_rows:,} {name}"
        for name in _LISTED
        if (found := getattr(tables, name)).num_rows > found.num_listed
    ]
    if not cut:
        return None
    return f"Of {', '.join(cut)} the largest are listed, and the others summed in the row (other)."


def tables_of_report(report: RankReport) -> TraceTables:
    """What a report on a rank keeps of its tables; means are of the totals where the report has none."""
    return TraceTables(
        rank=report.rank,
        path=report.path,
        span_ns=report.span_ns,
        has_device=report.device_busy_ns > 0,
        operators=_columns(OperatorColumns, report.top_ops),
        shapes=_columns(ShapeColumns, report.roofline, _shape),
        kernels=_columns(KernelColumns, report.top_kernels, _kernel),
        lines=_columns(LineColumns, report.top_lines, _line),
        modules=_columns(ModuleColumns, report.top_modules, _module),
        copies=_columns(
            CopyColumns, report.copies.places, lambda place: _copy(place, report.copies.total_ns)
        ),
        gaps=gap_columns(report.idle, report.origin_ns),
    )


def _columns(kind: type[C], rows: Iterable[Any], more: Any = lambda _row: {}) -> C:
    """Rows of a report as columns; a field that neither a row nor `more` has is left out."""
    listed = [{**_fields(row), **more(row)} for row in rows]
    names = [name for name in kind.__struct_fields__ if listed and name in listed[0]]
    return kind(
        num_rows=len(listed),
        num_listed=len(listed),
        **{name: [row[name] for row in listed] for name in names},
    )


def _fields(row: Record) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def _shape(row: Any) -> dict[str, Any]:
    line = None if row.line is None else f":{row.line}"
    where = f"{row.file}{line or ''} {row.function or ''}".rstrip() if row.file else row.module
    return {
        "name": row.op or "(no name)",
        "mean_ns": round(row.time_ns / row.calls) if row.calls else None,
        "bound": None if row.bound == "unknown" else row.bound,
        "where": where,
    }


def _kernel(row: Any) -> dict[str, Any]:
    return {
        "mean_ns": round(row.mean_ns),
        "tensor_cores": "yes" if row.tensor_cores else None,
        "op": row.where.op,
        "where": place_text(row.where),
    }


def _line(row: Any) -> dict[str, Any]:
    line = "" if row.line is None else f":{row.line}"
    return {
        "where": f"{row.file or '(no file)'}{line} {row.function or ''}".rstrip(),
        "top_ops": ", ".join(op.name for op in row.top_ops[:3]),
    }


def _module(row: Any) -> dict[str, Any]:
    return {"module": row.module or "(no name)"}


def _copy(row: Any, total_ns: int) -> dict[str, Any]:
    return {
        "kind": f"{row.kind} {row.memory or ''}".strip(),
        "share": row.total_ns / max(total_ns, 1),
        "bytes_per_s": row.total_bytes * 1e9 / row.total_ns if row.total_ns else None,
        "op": row.where.op,
        "where": place_text(row.where),
    }
