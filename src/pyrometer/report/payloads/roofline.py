"""What a page draws of the roofline: what operators reach, under what the machine allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pyrometer.hardware.datasheet import DatasheetPeaks, lookup
from pyrometer.record import Record, doc
from pyrometer.report.charts.scale import Scale
from pyrometer.report.documents import CheckDocument, Document, TraceDocument
from pyrometer.report.exhibits import Exhibits
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.measurement import AxisView, axis_view
from pyrometer.report.trace_context import MOST_RANKS
from pyrometer.trace.reporting.rank_report import RankReport
from pyrometer.trace.reporting.totals import RoofPoint

ALIKE = 1e-3
"""Ceilings nearer to each other than this share are one."""

DTYPES = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "signed char": "int8",
}  # fmt: skip


class Reached(Record, frozen=True, kw_only=True):
    """What one operator reached on inputs of one shape."""

    name: str
    shapes: str
    dtypes: str
    calls: int
    time_ns: int
    share: Annotated[float, doc("of the device time, or of all operators' own time")]
    intensity: Annotated[float, doc("FLOP per byte")]
    flop_per_s: float
    bytes_per_s: float | None
    share_of_roof: Annotated[float | None, doc("null where no roof is known")]
    bound: str
    place: Annotated[str | None, doc("file and line of the function that makes the longest of the calls")]


class Ceiling(Record, frozen=True, kw_only=True):
    """The most arithmetic that the machine does in one type."""

    name: Annotated[str, doc("the type; empty where it is not known")]
    flop_per_s: float


class RooflineView(Record, frozen=True, kw_only=True):
    """The operators of one rank, ready to be drawn."""

    rank: int
    device: Annotated[str, doc("empty for the host")]
    points: Annotated[list[Reached], doc("most time first")]
    omitted: Annotated[int, doc("listed operators without arithmetic, or without a formula")]
    covered_share: Annotated[float | None, doc("of the time, by operators with a formula")]
    ceilings: Annotated[list[Ceiling], doc("the lowest first")]
    bytes_per_s: Annotated[float | None, doc("the memory's bandwidth")]
    source: Annotated[str | None, doc("of the ceilings")]
    across: Annotated[AxisView, doc("FLOP per byte")]
    up: Annotated[AxisView, doc("FLOP per second")]


def blocks(document: Document, exhibits: Exhibits) -> Iterator[Block]:
    """One block for each rank of which some operator's arithmetic is known; of two recordings of one rank the first."""
    del exhibits
    seen: set[int] = set()
    for report in _reports(document):
        view = roofline_view(report) if report.rank not in seen else None
        seen.add(report.rank)
        if view is not None:
            yield block_of(f"roofline/{report.rank}", view)


def _reports(document: Document) -> Sequence[RankReport]:
    if isinstance(document, CheckDocument):
        return [document.trace] if document.trace is not None else []
    if isinstance(document, TraceDocument) and document.diff is None:
        return document.ranks[:MOST_RANKS]
    return []  # of two recordings neither may stand for both


def roofline_view(report: RankReport) -> RooflineView | None:
    """The roofline of one rank; `None` when no operator's arithmetic is known."""
    points = [_reached(point) for point in report.roofline if point.intensity and point.flop_per_s]
    if not points:
        return None
    bandwidth = _bandwidth(report)
    ceilings = _ceilings(report, bandwidth)
    ridges = [ceiling.flop_per_s / bandwidth for ceiling in ceilings] if bandwidth else []
    tops = [ceiling.flop_per_s for ceiling in ceilings]
    tops += [point.flop_per_s / point.share_of_roof for point in points if point.share_of_roof]
    return RooflineView(
        rank=report.rank,
        device=report.devices[0] if report.devices else "",
        points=points,
        omitted=len(report.roofline) - len(points),
        covered_share=report.utilisation.covered_share,
        ceilings=ceilings,
        bytes_per_s=bandwidth,
        source=report.utilisation.peaks_source,
        across=_axis([*(point.intensity for point in points), *ridges]),
        up=_axis([*(point.flop_per_s for point in points), *tops]),
    )


def _reached(point: RoofPoint) -> Reached:
    return Reached(
        name=point.op or "(no operator)",
        shapes=point.shapes or "",
        dtypes=point.dtypes or "",
        calls=point.calls,
        time_ns=point.time_ns,
        share=point.share,
        intensity=point.intensity or 0.0,
        flop_per_s=point.flop_per_s or 0.0,
        bytes_per_s=point.bytes_per_s,
        share_of_roof=point.share_of_roof,
        bound=point.bound or "unknown",
        place=f"{point.file}:{point.line}" if point.file is not None and point.line is not None else None,
    )


def _bandwidth(report: RankReport) -> float | None:
    """The vendor's figure, or what the operators imply.

    An operator that the memory limits has `share_of_roof = bytes_per_s / bandwidth`; one that arithmetic limits would imply
    less, so that the largest of the implied bandwidths is the machine's, where any operator is limited by memory.
    """
    known = _datasheet(report)
    if known is not None:
        return known.memory_bytes_per_s
    implied = [
        point.bytes_per_s / point.share_of_roof
        for point in report.roofline
        if point.bytes_per_s and point.share_of_roof
    ]
    limited = any(point.bound == "memory" for point in report.roofline)
    agreed = sum(value > max(implied) * (1 - ALIKE) for value in implied) > 1
    return max(implied) if implied and (limited or agreed) else None


def _ceilings(report: RankReport, bandwidth: float | None) -> list[Ceiling]:
    known = _datasheet(report)
    used = {_dtype(point) for point in report.roofline}
    if known is not None:
        found = {name: rate for name, rate in known.flop_per_s.items() if name in used}
        return [
            Ceiling(name=name, flop_per_s=rate)
            for name, rate in sorted(found.items(), key=lambda item: item[1])
        ]
    implied: list[Ceiling] = []
    for point in report.roofline:
        if not point.flop_per_s or not point.share_of_roof or not point.intensity:
            continue
        rate = point.flop_per_s / point.share_of_roof
        below = bandwidth is None or rate < point.intensity * bandwidth * (1 - ALIKE)
        if below and all(abs(rate / other.flop_per_s - 1) > ALIKE for other in implied):
            implied.append(Ceiling(name=_dtype(point), flop_per_s=rate))
    return sorted(implied, key=lambda ceiling: ceiling.flop_per_s)


def _datasheet(report: RankReport) -> DatasheetPeaks | None:
    found = lookup(report.devices[0]) if report.devices else None
    return found if found is not None and found.source == report.utilisation.peaks_source else None


def _dtype(point: RoofPoint) -> str:
    """The type of the first floating-point input."""
    quoted = (text.strip('[]" ') for text in (point.dtypes or "").split(","))
    return next((DTYPES[name] for name in quoted if name in DTYPES), "")


def _axis(values: list[float]) -> AxisView:
    return axis_view(Scale(min(values) / 2, max(values) * 2, log=True))
