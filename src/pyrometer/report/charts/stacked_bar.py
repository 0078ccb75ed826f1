"""Where the step goes: one bar, divided by phases."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.bench.measurement import PhaseTime
from pyrometer.quantity import format_seconds
from pyrometer.report.charts.svg import at, chart, tag
from pyrometer.report.facts.layout import percent
from pyrometer.report.facts.measurement import phase_slots

BAR_TOP = 24.0
BAR_HEIGHT = 34.0
LABELLED = 0.1
ROOMY = 0.28


def stacked_bar(phases: Sequence[PhaseTime]) -> Markup:
    """Draw the shares of the phases; wide ones carry their name, all are in the list that goes with it."""
    parts = []
    start = 0.0
    for slot, phase in zip(phase_slots(phases), phases, strict=True):
        title = tag("title", f"{phase.name} {percent(phase.share)}, {format_seconds(phase.mean_s)}")
        box = {"x": at(start), "width": at(phase.share), "y": BAR_TOP, "height": BAR_HEIGHT}
        parts.append(tag("rect", title, cls=f"segment phase-{slot}", **box))
        if phase.share >= LABELLED:
            label = f"{phase.name} {percent(phase.share)}"
            roomy = "label" if phase.share >= ROOMY else "label wide-only"
            parts.append(tag("text", label, cls=roomy, x=at(start), y=BAR_TOP - 8))
        start += phase.share
    described = ", ".join(f"{phase.name} {percent(phase.share)}" for phase in phases)
    return chart(f"Shares of the mean step: {described}", parts, BAR_TOP + BAR_HEIGHT)
