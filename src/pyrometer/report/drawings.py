"""The drawings of a page, by the names under which chapters ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from pyrometer.bench.measurement import Measurement
from pyrometer.bench.record import Soak
from pyrometer.compiler.report import CompileReport
from pyrometer.report.chapters.chapter import Chart
from pyrometer.report.chapters.compile import REST_SLOT, WHOLE_SLOT, phase_slots
from pyrometer.report.chapters.memory import SLOTS
from pyrometer.report.charts.course import course
from pyrometer.report.charts.forest import forest
from pyrometer.report.charts.histogram import histogram
from pyrometer.report.charts.icicle import icicle
from pyrometer.report.charts.intervals import intervals
from pyrometer.report.charts.lags import lag_map, stage_bars
from pyrometer.report.charts.latency_trend import latency_trend
from pyrometer.report.charts.line import memory_line
from pyrometer.report.charts.ranks import rank_bars
from pyrometer.report.charts.roofline import Point, Roof, roofline
from pyrometer.report.charts.scaling import scaling_line
from pyrometer.report.charts.shares import share_strip
from pyrometer.report.charts.stacked_area import stacked_area
from pyrometer.report.charts.steps import steps_chart
from pyrometer.report.charts.strip import steady_strip, warmup_strip
from pyrometer.report.charts.svg import tag
from pyrometer.report.charts.tree import boxes
from pyrometer.report.charts.trend import trend
from pyrometer.report.charts.trials import trial_strip
from pyrometer.report.charts.windows import window_line
from pyrometer.report.facts import trace_words
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting.totals import arithmetic_of


def _strips(m: Measurement) -> Markup | None:
    steady = steady_strip(m)
    return tag("div", warmup_strip(m) or Markup(), steady, cls="over-time") if steady is not None else None


def _windows(soak: Soak) -> Markup | None:
    return window_line(soak.windows)


def _over_time(report: RankReport) -> Markup | None:
    time = report.over_time
    if report.span_ns <= 0:
        return None
    names = [name for name in trace_words.PART_SLOTS if name in time.parts]
    widths = [end - start for start, end in pairwise(time.edges_ns)]
    columns = [[time.parts[name][i] / width for name in names] for i, width in enumerate(widths)]
    whole = trace_words.ns(report.span_ns)
    return share_strip(
        columns,
        [trace_words.PART_SLOTS[name] for name in names],
        f"The same over time: {whole} from left to right",
        1e-9 * report.span_ns,
    )


def _tree(report: RankReport) -> Markup | None:
    placed = boxes(report.call_tree, device=report.device_busy_ns > 0)
    return icicle(placed, "Call tree: each box is as wide as its share of the time") if placed else None


def _roofline(report: RankReport) -> Markup | None:
    points = [
        Point(f"{point.op}", point.intensity or 0.0, point.flop_per_s or 0.0, point.share)
        for point in report.roofline
    ]
    rates = {ceiling.name: ceiling.rate for ceiling in report.ceilings}
    tops = [rates[name] for name in arithmetic_of(report.roofline) if name in rates]
    return roofline(points, Roof(max(tops), rates["memory"]) if tops and "memory" in rates else None)


def _compiling_steps(report: CompileReport) -> Markup | None:
    return steps_chart(report, phase_slots(report.cost.phases_s), REST_SLOT, WHOLE_SLOT)


DRAWINGS: Mapping[str, Callable[[Any], Markup | None]] = MappingProxyType({
    "compiling-steps": _compiling_steps,
    "course": course,
    "forest": forest,
    "histogram": histogram,
    "intervals": intervals,
    "lag-map": lag_map,
    "latency-trend": latency_trend,
    "live-bytes": lambda timeline: stacked_area(timeline, SLOTS),
    "memory-line": memory_line,
    "over-time": _over_time,
    "rank-bars": rank_bars,
    "roofline": _roofline,
    "stage-bars": stage_bars,
    "scaling": scaling_line,
    "strips": _strips,
    "tree": _tree,
    "trend": trend,
    "trials": trial_strip,
    "windows": _windows,
})  # fmt: skip
"""Graphs of compiled code are images, and so are laid out by the template."""


def drawn(chart: Chart) -> Markup | None:
    """The drawing for which a chapter asks; `None` where its record holds too little."""
    return DRAWINGS[chart.name](chart.record)
