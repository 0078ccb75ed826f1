"""What a page draws of the roofline: what operators reach, under what the machine allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pyrometer.record import Record, doc
from pyrometer.report.attachments import MOST_RANKS, Attachments
from pyrometer.report.charts.scale import Scale
from pyrometer.report.documents import CheckDocument, Document, TraceDocument
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.measurement import AxisView, axis_view
from pyrometer.trace.analysis.ceilings import MEMORIES
from pyrometer.trace.naming.shapes import shape_words
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.records.rates import Ceiling
from pyrometer.trace.reporting.totals import RoofPoint, arithmetic_of


class Reached(Record, frozen=True, kw_only=True):
    """What one operator reached on inputs of one shape."""

    name: str
    shapes: str
    dtypes: str
    calls: int
    time_ns: int
    share: Annotated[
        float, doc("of the traced span: the operator's own time on the device, else on the host")
    ]
    intensity: Annotated[float, doc("FLOP per byte")]
    flop_per_s: float
    bytes_per_s: float | None
    share_of_roof: Annotated[float | None, doc("null where no roof is known")]
    bound: str
    place: Annotated[str | None, doc("file and line of the function that makes the longest of the calls")]


class RooflineView(Record, frozen=True, kw_only=True):
    """The operators of one rank, ready to be drawn."""

    rank: int
    device: Annotated[str, doc("empty for the host")]
    points: Annotated[list[Reached], doc("most time first")]
    omitted: Annotated[int, doc("listed operators without arithmetic, or without a formula")]
    covered_share: Annotated[float | None, doc("of the time, by operators with a formula")]
    ceilings: Annotated[list[Ceiling], doc("of the arithmetic that the operators do, the lowest first")]
    slopes: Annotated[list[Ceiling], doc("of the memory and, where it was measured, of the cache")]
    source: Annotated[str | None, doc("of the ceilings")]
    across: Annotated[AxisView, doc("FLOP per byte")]
    up: Annotated[AxisView, doc("FLOP per second")]


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """One block for each rank of which some operator's arithmetic is known; of two recordings of one rank the first."""
    del attachments
    seen: set[int] = set()
    for report in _reports(document):
        view = roofline_view(report) if report.rank not in seen else None
        seen.add(report.rank)
        if view is not None:
            yield block_of(f"roofline/{report.rank}", view)


def _reports(document: Document) -> Sequence[RankReport]:
    if isinstance(document, CheckDocument):
        return [document.evidence.trace] if document.evidence.trace is not None else []
    if isinstance(document, TraceDocument) and document.diff is None:
        return document.reports[:MOST_RANKS]
    return []  # of two recordings neither may stand for both


def roofline_view(report: RankReport) -> RooflineView | None:
    """The roofline of one rank; `None` when no operator's arithmetic is known."""
    points = [
        _reached(point, report.span_ns) for point in report.roofline if point.intensity and point.flop_per_s
    ]
    if not points:
        return None
    used = arithmetic_of(report.roofline)
    slopes = [ceiling for ceiling in report.ceilings if ceiling.name in MEMORIES]
    tops = [ceiling for ceiling in report.ceilings if ceiling.name not in MEMORIES and ceiling.name in used]
    memory = next((slope.rate for slope in slopes if slope.name == "memory"), None)
    ridges = [top.rate / memory for top in tops] if memory else []
    roofs = [point.flop_per_s / point.share_of_roof for point in points if point.share_of_roof]
    return RooflineView(
        rank=report.rank,
        device=report.devices[0] if report.devices else "",
        points=points,
        omitted=len(report.roofline) - len(points),
        covered_share=report.utilisation.covered_share,
        ceilings=tops,
        slopes=slopes,
        source=report.utilisation.peaks_source,
        across=_axis([*(point.intensity for point in points), *ridges]),
        up=_axis([*(point.flop_per_s for point in points), *roofs, *(top.rate for top in tops)]),
    )


def _reached(point: RoofPoint, span_ns: int) -> Reached:
    return Reached(
        name=point.op or "(no operator)",
        shapes=shape_words(point.shapes),
        dtypes=point.dtypes or "",
        calls=point.calls,
        time_ns=point.time_ns,
        share=point.time_ns / max(span_ns, 1),
        intensity=point.intensity or 0.0,
        flop_per_s=point.flop_per_s or 0.0,
        bytes_per_s=point.bytes_per_s,
        share_of_roof=point.share_of_roof,
        bound=point.bound or "unknown",
        place=f"{point.file}:{point.line}" if point.file is not None and point.line is not None else None,
    )


def _axis(values: list[float]) -> AxisView:
    return axis_view(Scale(min(values) / 2, max(values) * 2, log=True))
