"""What a page shows of one rank's trace: its chapters in words, and the drawings that go with them."""

from __future__ import annotations

from typing import Any

from pyrometer.report.charts.roofline import Point, roofline
from pyrometer.report.charts.shares import share_bar
from pyrometer.report.facts import trace as of_trace
from pyrometer.trace.rank_report import RankReport
from pyrometer.trace.verdict import judge


def rank_context(report: RankReport) -> dict[str, Any]:
    """Fills `trace_sections.html.j2` for one rank."""
    shares = of_trace.part_shares(report.breakdown_ns)
    return {
        "rank": report.rank,
        "sentence": judge(report).sentence,
        "sections": of_trace.sections(report),
        "shares": shares,
        "bar": share_bar(shares, "the traced time"),
        "strip": None,
        "drawings": {"roofline": _roofline(report)},
    }


def _roofline(report: RankReport) -> Any:
    points = [
        Point(f"{point.op}", point.intensity or 0.0, point.flop_per_s or 0.0, point.share)
        for point in report.roofline
    ]
    return roofline(points, None)
