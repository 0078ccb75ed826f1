"""The time of a search, trial after trial, coloured by what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.quantity import Seconds, format_seconds
from pyrometer.report.charts.scale import SECONDS, Scale
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, tag, x_axis

HEIGHT = 34.0
WIDE_CHARACTERS, NARROW_CHARACTERS = 118, 44
"""Characters that fit into the whole strip on a page and on a telephone."""


class Trial(NamedTuple):
    """One trial of a search."""

    name: str
    outcome: str
    slot: int  # colour
    elapsed_s: Seconds


def trial_strip(trials: Sequence[Trial]) -> Markup | None:
    """Draw the trials one behind the other; `None` where none took time."""
    total = sum(trial.elapsed_s for trial in trials)
    if total <= 0:
        return None
    parts, start = [], 0.0
    for trial in trials:
        share = trial.elapsed_s / total
        title = tag("title", f"{trial.name}: {trial.outcome}, {format_seconds(trial.elapsed_s)}")
        box = {"x": at(start), "width": at(share), "y": 0.0, "height": HEIGHT}
        parts.append(tag("rect", title, cls=f"segment phase-{trial.slot}", **box))
        if len(trial.name) + 2 <= share * WIDE_CHARACTERS:
            roomy = "inside" if len(trial.name) + 2 <= share * NARROW_CHARACTERS else "inside wide-only"
            where = {"x": at(start + share / 2), "y": HEIGHT / 2 + 4, "text_anchor": "middle"}
            parts.append(tag("text", trial.name, cls=roomy, **where))
        start += share
    described = "; ".join(f"{t.name}: {t.outcome}, {format_seconds(t.elapsed_s)}" for t in trials)
    axis = x_axis(Scale(0.0, total), SECONDS, HEIGHT, HEIGHT)
    return chart(described, [*parts, *axis], HEIGHT + AXIS_HEIGHT)
