"""What a page shows of traces: chapters in words, and the drawings that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from pyrometer.report.charts.icicle import icicle
from pyrometer.report.charts.roofline import Point, Roof, roofline
from pyrometer.report.charts.shares import share_bar, share_strip
from pyrometer.report.charts.tree import boxes
from pyrometer.report.facts import trace_words
from pyrometer.report.facts.trace_document import Part
from pyrometer.trace.reporting.rank_report import RankReport
from pyrometer.trace.reporting.totals import arithmetic_of


def part_contexts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Fills `trace_sections.html.j2`; of several ranks the overview tells of the first."""
    first = next((part for part in parts if part.report is not None), None)
    return [part_context(part, leads=part.report is None or part is first) for part in parts]


def part_context(part: Part, *, leads: bool = True) -> dict[str, Any]:
    """Fills one part of `trace_sections.html.j2`."""
    report = part.report
    shares = trace_words.part_shares(report.breakdown_ns) if report is not None else []
    return {
        "title": part.title,
        "anchor": f"-{report.rank}" if report is not None else "",
        "leads": leads,
        "sections": part.sections,
        "shares": shares,
        "whole": _whole(report) if report is not None else "",
        "bar": share_bar(shares, "the traced time") if shares else None,
        "drawings": _drawings(report) if report is not None else {},
    }


def _whole(report: RankReport) -> str:
    """What a bar of the traced time is."""
    steps = len(report.steps)
    return f"{steps:,} traced steps together" if steps > 1 else "one step"


def _drawings(report: RankReport) -> dict[str, Markup | None]:
    return {"breakdown": _strip(report), "roofline": _roofline(report), "tree": _tree(report)}


def _strip(report: RankReport) -> Markup | None:
    found = report.over_time
    if report.span_ns <= 0:
        return None
    names = [name for name in trace_words.PART_SLOTS if name in found.parts]
    widths = [end - start for start, end in pairwise(found.edges_ns)]
    columns = [[found.parts[name][i] / width for name in names] for i, width in enumerate(widths)]
    whole = trace_words.ns(report.span_ns)
    return share_strip(
        columns,
        [trace_words.PART_SLOTS[name] for name in names],
        f"The same over time: {whole} from left to right",
    )


def _tree(report: RankReport) -> Markup | None:
    placed = boxes(report.call_tree, device=report.device_busy_ns > 0)
    return icicle(placed, "Call tree: each box is as wide as its share of the time") if placed else None


def _roofline(report: RankReport) -> Markup | None:
    points = [
        Point(f"{point.op}", point.intensity or 0.0, point.flop_per_s or 0.0, point.share)
        for point in report.roofline
    ]
    rates = {one.name: one.rate for one in report.ceilings}
    tops = [rates[name] for name in arithmetic_of(report.roofline) if name in rates]
    return roofline(points, Roof(max(tops), rates["memory"]) if tops and "memory" in rates else None)
