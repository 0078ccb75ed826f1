"""Speedscope's own JSON: one evented profile per thread and stream, times in nanoseconds from the first event on."""

from __future__ import annotations

from typing import Any

import polars as pl

from pyrometer.trace.kinds import HOST, Kind, is_kind
from pyrometer.trace.linking.tree import TOLERANCE_NS
from pyrometer.trace.naming.frames import frame_parts
from pyrometer.trace.timing.placing import place_slices
from pyrometer.trace.trace import RankTrace

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(trace: RankTrace, *, name: str = "trace") -> dict[str, Any]:
    """A trace as the dictionary that speedscope reads as JSON.

    The format asks that slices nest. What overlaps without nesting gets a further profile of the same thread or stream,
    so that no event is lost. Overlap of up to a microsecond, which comes from rounding, is cut off. Python functions
    carry their file and line. The thread with the most operators comes first.

    Args:
        trace: one rank.
        name: title of the document.
    """
    slices = place_slices(trace)
    frames, number = _frames(slices)
    span = slices.select(low=pl.col("start_ns").min(), high=pl.col("end_ns").max()).row(0)
    first, last = span[0] or 0, span[1] or 0
    numbered = slices.select(
        "track",
        "event",
        pl.when(is_kind(*HOST)).then("parent").fill_null(-1),
        frame=number,
        start=pl.col("start_ns") - first,
        end=pl.col("end_ns") - first,
    )
    profiles = [
        {
            "type": "evented",
            "name": f"{label} (overlapping {i})" if i else label,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": last - first,
            "events": events,
        }
        for label, part in _tracks(trace, numbered)
        for i, events in enumerate(_layers(part.drop("track")))
    ]
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": "pyrometer",
        "activeProfileIndex": 0 if profiles else None,
        "shared": {"frames": frames},
        "profiles": profiles,
    }


def _tracks(trace: RankTrace, slices: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Slices of each track under its name; the thread with the most operators comes first, then the order of start."""
    names = trace.tracks.select(
        "track",
        label=pl.coalesce("thread_name", pl.concat_str("pid", "tid", separator=" ", ignore_nulls=True)),
    )
    labels = dict(names.iter_rows())
    ops = trace.of_kind(Kind.CPU_OP)["track"]
    main = ops.mode().min() if len(ops) else None
    parts = slices.partition_by("track", maintain_order=True, as_dict=True)
    order = sorted(parts, key=lambda key: key[0] != main)
    return [(labels.get(key[0]) or f"track {key[0]}", parts[key]) for key in order]


def _frames(slices: pl.DataFrame) -> tuple[list[dict[str, Any]], pl.Series]:
    """The distinct names with file and line where they have one, and the number of each slice's."""
    names = slices.select(pl.col("name").fill_null("(unnamed)"))
    distinct = names.unique(maintain_order=True).with_row_index("frame")
    parsed = distinct.hstack(frame_parts(distinct["name"]))
    frames = [
        {"name": name} if file is None else {"name": name, "file": file, "line": line}
        for name, file, line in parsed.select("name", "file", "line").iter_rows()
    ]
    return frames, names.join(distinct, on="name", how="left", maintain_order="left")["frame"]


def _layers(slices: pl.DataFrame) -> list[list[dict[str, Any]]]:
    """Opening and closing events of one track, in as many layers as it takes for them to nest."""
    layers: list[_Layer] = []
    layer_of: dict[int, int] = {}
    for event, parent, frame, start, end in slices.iter_rows():
        candidates = (layer_of.get(parent, 0), *range(len(layers)))
        at = next((i for i in candidates if i < len(layers) and layers[i].takes(start, end)), len(layers))
        if at == len(layers):
            layers.append(_Layer())
        layers[at].open(frame, start, end)
        layer_of[event] = at
    return [layer.close() for layer in layers]


class _Layer:
    """Slices that nest, as a stack of what is open."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._open: list[tuple[int, int]] = []  # end and frame

    def takes(self, start: int, end: int) -> bool:
        """Whether a slice nests here; overlap within the rounding of times does not matter."""
        self._close_until(start)
        while (
            self._open
            and end > self._open[-1][0] + TOLERANCE_NS
            and self._open[-1][0] <= start + TOLERANCE_NS
        ):
            self._close_one(start)
        return not self._open or end <= self._open[-1][0] + TOLERANCE_NS

    def open(self, frame: int, start: int, end: int) -> None:
        """Put a slice on; it ends with what it lies in at the latest."""
        self._close_until(start)
        latest = self._open[-1][0] if self._open else end
        self._open.append((min(end, latest), frame))
        self._events.append({"type": "O", "frame": frame, "at": start})

    def close(self) -> list[dict[str, Any]]:
        """All events, everything closed."""
        while self._open:
            self._close_one(self._open[-1][0])
        return self._events

    def _close_until(self, moment: int) -> None:
        while self._open and self._open[-1][0] <= moment:
            self._close_one(self._open[-1][0])

    def _close_one(self, moment: int) -> None:
        _, frame = self._open.pop()
        self._events.append({"type": "C", "frame": frame, "at": moment})
