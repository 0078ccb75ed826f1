"""Every rank of a job as a bar of its own, divided alike, with what it waited for the others apart."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.quantity import Seconds, format_seconds
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, tag, x_axis
from pyrometer.report.facts.trace_words import PART_NAMES, PART_SLOTS
from pyrometer.trace.jobs.job import RankRow

ROW_HEIGHT, BAR_HEIGHT = 30.0, 20.0
MOST_BARS = 16
WAITING, MOVING = "waiting for other ranks", "communication that moves data"

Piece = tuple[str, Seconds, str]
"""Name, length, and classes that colour it."""


def rank_bars(rows: Sequence[RankRow]) -> Markup | None:
    """A bar per rank as long as its mean step, or as its span; `None` where nothing lasts."""
    lengths = [length_s(row) for row in rows]
    if not rows or not max(lengths):
        return None
    scale = Scale(0.0, fit([0.0, *lengths], pad=0.02).high)
    marks = [mark for number, row in enumerate(rows) for mark in _bar(number, row, scale)]
    bottom = len(rows) * ROW_HEIGHT
    names = [
        tag("text", f"rank {row.rank}", cls="tick", x=62, y=number * ROW_HEIGHT + 15, text_anchor="end")
        for number, row in enumerate(rows)
    ]
    beside = tag("svg", *names, cls="y-axis", width=70, height=bottom + AXIS_HEIGHT, aria_hidden="true")
    axis = x_axis(scale, SECONDS, 0.0, bottom)
    said = ", ".join(f"rank {row.rank} waited {format_seconds(_waited_s(row))}" for row in rows)
    return chart(f"A step of each rank: {said}", [*axis, *marks], bottom + AXIS_HEIGHT, beside)


def length_s(row: RankRow) -> Seconds:
    """What a bar stands for: the mean step of a rank, or all of its span where no step is marked."""
    return 1e-9 * (row.step_ns or row.span_ns)


def pieces(row: RankRow) -> list[Piece]:
    """The parts of a bar; communication that nothing hides is divided into waiting and moving data."""
    scale = length_s(row) / max(row.span_ns, 1)
    found: list[Piece] = []
    for name, slot in PART_SLOTS.items():
        took_s = scale * row.parts.get(name, 0)
        if name == "exposed_comm":
            waited_s = min(_waited_s(row), took_s)
            found += [
                (WAITING, waited_s, f"phase-{slot} waiting"),
                (MOVING, took_s - waited_s, f"phase-{slot}"),
            ]
        else:
            found.append((PART_NAMES[name], took_s, f"phase-{slot}"))
    return [piece for piece in found if piece[1] > 0]


def _waited_s(row: RankRow) -> Seconds:
    return row.waited_ns * length_s(row) / max(row.span_ns, 1)


def _bar(number: int, row: RankRow, scale: Scale) -> list[Markup]:
    marks, start = [], 0.0
    for name, took_s, colour in pieces(row):
        title = tag("title", f"rank {row.rank}: {name} {format_seconds(took_s)}")
        box = {
            "x": at(scale(start)),
            "width": at(scale(took_s)),
            "y": number * ROW_HEIGHT,
            "height": BAR_HEIGHT,
        }
        marks.append(tag("rect", title, cls=f"segment {colour}", **box))
        start += took_s
    return marks
