"""`view_trace`: one rank made ready to be drawn, in a second or two and a megabyte or so."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from pyrometer.errors import InputError
from pyrometer.quantity import format_seconds
from pyrometer.trace.analysis.timeline import SMALL
from pyrometer.trace.rows import IntArray
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.calls import find_calls
from pyrometer.trace.view.names import Numbered, short, used_first
from pyrometer.trace.view.record import (
    SEVERAL,
    CallColumns,
    LabelColumns,
    LaneColumns,
    LaunchColumns,
    MergedColumns,
    SliceColumns,
    StepView,
    TraceView,
    TrackView,
)
from pyrometer.trace.view.slices import Slices, find_slices
from pyrometer.trace.view.tracks import find_tracks

MAX_SLICES = 200_000
"""Slices that a page draws at about 60 frames a second; packed they take 1 to 1.5 MB of it."""


def view_trace(trace: RankTrace, *, max_slices: int = MAX_SLICES) -> TraceView:
    """Everything that a page draws of one rank: slices with their launches, steps, and the merged call tree.

    Args:
        trace: one rank.
        max_slices: about how many slices at most. Where there are more, short neighbours on a lane are merged, and `notice`
            says so; how many each stands for is told, so that none is lost.

    Raises:
        InputError: `max_slices` is below 1.
    """
    if max_slices < 1:
        raise InputError(
            f"max_slices={max_slices}: at least one slice must be drawn; leave it out for {MAX_SLICES}"
        )
    tracks, order = find_tracks(trace)
    slices = find_slices(trace, order, max_slices)
    calls = find_calls(trace)
    names = Numbered([slices.events["name"], pl.Series([SMALL]), calls["name"]])
    kinds = Numbered([slices.events["kind"], pl.Series([SEVERAL]), calls["kind"]])
    labels, label = _labels(slices, names, kinds)
    origin, steps = trace.activity.start_ns, trace.steps
    return TraceView(
        rank=trace.rank,
        path=trace.info.path,
        origin_ns=origin,
        span_ns=trace.activity.span_ns,
        names=[short(name) for name in names.texts],
        kinds=kinds.texts,
        tracks=_fitted(tracks, slices),
        steps=[
            StepView(name=name, start_ns=start - origin, end_ns=end - origin)
            for name, start, end in steps.select("name", "start_ns", "end_ns").iter_rows()
        ],
        lanes=_lanes(slices),
        labels=labels,
        slices=_columns(slices, label, origin),
        merged=_merged(slices),
        launches=_launches(slices, trace),
        calls=_calls(calls, names, kinds),
        num_slices=slices.events.height,
        num_passing=slices.num_passing,
        notice=_notice(slices),
    )


def _labels(slices: Slices, names: Numbered, kinds: Numbered) -> tuple[LabelColumns, IntArray]:
    """The pairs of name and kind that occur, and which of them each drawn slice has."""
    name, kind = slices.one_of(names.codes[0]), slices.one_of(kinds.codes[0])
    name = np.where(name < 0, names.codes[1][0], name)
    kind = np.where(kind < 0, kinds.codes[1][0], kind)
    pair, label = np.unique(name * len(kinds.texts) + kind, return_inverse=True)
    rank, place = used_first(np.bincount(label, minlength=len(pair)))
    pair = pair[rank]
    return (
        LabelColumns(name=(pair // len(kinds.texts)).tolist(), kind=(pair % len(kinds.texts)).tolist()),
        place[label],
    )


def _lanes(slices: Slices) -> LaneColumns:
    track, row = slices.at_first("track"), slices.at_first("lane")
    begin = _lane_begins(slices)
    return LaneColumns(
        track=track[begin].tolist(),
        row=row[begin].tolist(),
        num_slices=np.diff(np.append(begin, len(track))).tolist(),
    )


def _fitted(tracks: list[TrackView], slices: Slices) -> list[TrackView]:
    """The tracks with as many rows as are drawn."""
    rows = np.zeros(len(tracks), np.int64)
    np.maximum.at(rows, slices.at_first("track"), slices.at_first("lane") + 1)
    return [msgspec.structs.replace(track, num_rows=int(rows[i])) for i, track in enumerate(tracks)]


def _lane_begins(slices: Slices) -> IntArray:
    """Indices of the slices that are the first of their lane."""
    track, row = slices.at_first("track"), slices.at_first("lane")
    changes = (np.diff(track, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0)
    return np.flatnonzero(changes)


def _columns(slices: Slices, label: IntArray, origin: int) -> SliceColumns:
    start, dur = slices.start_ns - origin, slices.dur_ns
    before = np.zeros(len(start), np.int64)
    before[1:] = (start + dur)[:-1]
    before[_lane_begins(slices)] = 0
    return SliceColumns(gap_ns=(start - before).tolist(), dur_ns=dur.tolist(), label=label.tolist())


def _merged(slices: Slices) -> MergedColumns:
    rows = np.flatnonzero(slices.num_events > 1)
    return MergedColumns(
        slice=_differences(rows),
        num_events=slices.num_events[rows].tolist(),
        busy_ns=slices.busy_ns[rows].tolist(),
    )


def _launches(slices: Slices, trace: RankTrace) -> LaunchColumns:
    work, source = slices.launches(trace)
    return LaunchColumns(slice=_differences(work), source=_differences(source))


def _differences(values: IntArray) -> list[int]:
    differences: list[int] = np.diff(values, prepend=0).tolist()
    return differences


def _calls(calls: pl.DataFrame, names: Numbered, kinds: Numbered) -> CallColumns:
    columns = ("calls", "total_ns", "self_ns", "device_ns", "device_self_ns")
    return CallColumns(
        parent=calls["parent"].fill_null(-1).to_list(),
        name=names.codes[2].tolist(),
        kind=kinds.codes[2].tolist(),
        **{column: calls[column].to_list() for column in columns},
    )


def _notice(slices: Slices) -> str | None:
    """What was merged, in figures: the longest slice that is not drawn by itself says from where on all are."""
    merged = np.repeat(slices.num_events > 1, slices.num_events)
    if not merged.any():
        return None
    longest = int(slices.events["dur_ns"].to_numpy()[merged].max())
    return (
        f"{slices.events.height:,} slices; neighbours of up to {format_seconds(longest / 1e9)} are drawn together, "
        f"{int(merged.sum()):,} of them as {int((slices.num_events > 1).sum()):,}"
    )
