"""Time in which a device has nothing to do because the host has not launched more.

The profiler slows the host and not the device, so that a trace shows more of this than a run without it. Where the length of
an untraced step is known, no more counts than that step leaves beside the device's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrometer.advice import Confidence
from pyrometer.rules.rule import Case

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.records.waiting import HostActivity

FEWEST_GAPS = 10
"""Fewer gaps than this are a start or an end, not how the program runs."""

LAUNCHING = frozenset({"operator", "python", "runtime", "annotation", "nothing"})
"""What a host does that is on the way to its next launch; loading data, waiting, allocating and collecting garbage are not."""


@dataclass(frozen=True)
class Starvation:
    """How long a device waits for launches."""

    share: float
    """Of the span, at most what an untraced step leaves."""
    traced_share: float
    after_short: float
    """Share of it that follows kernels below 10 µs, which are done before the next launch can arrive."""
    num_gaps: int
    doing: tuple[HostActivity, ...]
    """What the host did the longest meanwhile."""
    checked: bool
    """The length of an untraced step was known."""

    @property
    def confidence(self) -> Confidence:
        """High where the trace's share holds without the profiler."""
        return "high" if self.checked else "medium"


def starvation(case: Case) -> Starvation | None:
    """How long the devices of a trace waited for launches; null without device work, or where it hardly ever happened."""
    report = case.trace
    if report is None or not report.span_ns or not report.device_busy_ns:
        return None
    groups = [
        group
        for group in report.idle.groups
        if group.cause == "launch_starvation" and group.host in LAUNCHING
    ]
    if sum(group.num_gaps for group in groups) < FEWEST_GAPS:
        return None
    traced = sum(group.total_ns for group in groups) / (report.span_ns * max(len(report.devices), 1))
    left = untraced_idle_share(case)
    doing = sorted(
        (activity for group in groups for activity in group.doing), key=lambda activity: -activity.total_ns
    )
    return Starvation(
        share=min(traced, 1.0) if left is None else min(traced, left),
        traced_share=traced,
        after_short=sum(group.after_short_ns for group in groups)
        / max(sum(group.total_ns for group in groups), 1),
        num_gaps=sum(group.num_gaps for group in groups),
        doing=tuple(doing[:3]),
        checked=left is not None,
    )


def untraced_idle_share(case: Case) -> float | None:
    """Share of an untraced step in which the device does nothing: the step as measured, less the device's work in the trace."""
    report = case.trace
    step_s = _untraced_step_s(case)
    if report is None or not report.steps or not step_s:
        return None
    busy_s = report.device_busy_ns * 1e-9 / len(report.steps)
    return min(1.0, max(0.0, 1 - busy_s / step_s))


def short_share(report: RankReport) -> float:
    """Share of the kernels that are below 10 µs, communication left out."""
    launches = report.launches.device
    return launches.num_short / launches.kernel.count if launches is not None and launches.kernel else 0.0


def _untraced_step_s(case: Case) -> float | None:
    if case.measurement is not None and case.measurement.median_s > 0:
        return case.measurement.median_s
    return case.capture.step_untraced_s if case.capture is not None else None
