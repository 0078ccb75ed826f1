"""Records derived from a record: with stretches of time cut out of it, or from one of its steps on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import polars as pl

from pyrometer.trace.kinds import DEVICE_WORK, Kind
from pyrometer.trace.linking.link import Links, reordered, with_steps
from pyrometer.trace.rows import IntArray, Mask, distinct, nullable, positions, row_numbers
from pyrometer.trace.sorts import Sorts
from pyrometer.trace.timing.intervals import Intervals, covered, length
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace, Results


def moved(moments: IntArray, cut: Intervals) -> IntArray:
    """Where moments lie once stretches are cut out: what comes before moves towards them, what comes after stays.

    >>> moved(np.array([0, 10, 15, 20, 30]), Intervals(np.array([10]), np.array([20]))).tolist()
    [10, 20, 20, 20, 30]
    """
    since = np.full(len(moments), min(int(moments.min(initial=0)), int(cut.start.min(initial=0))))
    return np.asarray(moments + length(cut) - covered(cut, since, moments), np.int64)


def without_stretches(trace: RankTrace, cut: Intervals) -> RankTrace:
    """The record without stretches of time: whatever ran meanwhile is shorter, and all that comes after them keeps its times."""
    if not len(cut.start):
        return trace
    tables = dict(trace.tables)
    tables["events"] = _moved_bounds(tables["events"], cut).with_columns(
        dur_ns=pl.col("end_ns") - pl.col("start_ns")
    )
    for name in ("flows", "counters"):
        moments = tables[name]["ts_ns"].to_numpy()
        tables[name] = tables[name].with_columns(ts_ns=pl.Series(moved(moments, cut), dtype=pl.Int64))
    return RankTrace(trace.info, tables, known_steps=_moved_bounds(trace.steps, cut), known_sorts=trace.sorts)


def _moved_bounds(frame: pl.DataFrame, cut: Intervals) -> pl.DataFrame:
    return frame.with_columns(
        pl.Series(name, moved(frame[name].to_numpy(), cut), dtype=pl.Int64) for name in ("start_ns", "end_ns")
    )


def between(trace: RankTrace, low: int, high: int) -> RankTrace:
    """The same record, of which only the span from one moment to another counts: device work is cut off at both."""
    start, end = trace.span
    low = min(max(low, start), end)
    high = min(max(high, low), end)
    windows = step_windows(trace).select(pl.col("start_ns", "end_ns"))
    length = pl.col("end_ns") - pl.col("start_ns")
    inside = windows.select(pl.all().clip(low, high)).select(length).to_series()
    usual = inside.filter(inside > 0).median()
    held = inside * 2 >= usual if isinstance(usual, float) else inside > 0  # of the others too little is left
    held |= (inside > 0) & (inside == windows.select(length).to_series())  # however short a whole one is
    steps = _numbered(trace.steps.filter(held))
    tables, links, sorts = _clipped(trace, low, high)
    return dataclasses.replace(
        trace,
        tables=tables,
        results=Results(),
        window=(low, high),
        known_steps=steps,
        known_links=with_steps(links, tables["events"], steps),
        known_sorts=sorts,
    )


def _numbered(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.with_columns(step=pl.int_range(pl.len(), dtype=pl.Int32))


def _clipped(trace: RankTrace, low: int, high: int) -> tuple[Mapping[str, pl.DataFrame], Links, Sorts]:
    """The tables with device work that lies within a span: work that waits for nothing in it must not begin before it."""
    start, end = (trace.tables["events"][name].to_numpy() for name in ("start_ns", "end_ns"))
    outside = trace.are(*DEVICE_WORK) & ((start < low) | (end > high))
    if not outside.any():
        return trace.tables, trace.links, trace.sorts
    start, end = (np.where(outside, np.clip(times, low, high), times) for times in (start, end))
    order = np.argsort(start, kind="stable")
    tables = _only(trace.tables, order)
    tables["events"] = _with_bounds(tables["events"], start[order], end[order])
    return tables, reordered(trace.links, tables["events"], order), trace.sorts.of_rows(order)


def _with_bounds(events: pl.DataFrame, start: IntArray, end: IntArray) -> pl.DataFrame:
    return events.with_columns(
        pl.Series("start_ns", start), pl.Series("end_ns", end), pl.Series("dur_ns", end - start)
    )


def from_step(trace: RankTrace, first: int) -> tuple[RankTrace, pl.DataFrame]:
    """The record from one step on, and the device work of the steps before it, which is left out.

    Its span begins when both the host and the device have finished with those steps. A thread's events that go on
    are cut where the host has.
    """
    events, steps = trace.events, trace.steps
    host_end = int(steps["end_ns"][first - 1])
    is_work = trace.are(*DEVICE_WORK)
    step, start, end = (row_numbers(events[name]) for name in ("step", "start_ns", "end_ns"))
    belongs = np.where(step >= 0, step >= first, start >= host_end)
    earlier = events.filter(pl.Series(is_work & ~belongs))
    last = earlier.filter(pl.col("step").is_not_null())["end_ns"].max()
    low = max(host_end, last if isinstance(last, int) else host_end)
    keep = np.where(is_work, belongs, (start >= host_end) | (end > host_end))
    captured = trace.are(Kind.CAPTURED)
    keep = np.where(captured, _above(trace.links.above, is_work & keep), keep)
    high = trace.span[1]
    begins = np.where(is_work, np.clip(start, low, high), np.maximum(start, host_end))
    ends = np.where(is_work, np.clip(end, low, high), end)
    rows = np.flatnonzero(keep)
    rows = rows[np.argsort(begins[rows], kind="stable")]
    tables = _only(trace.tables, rows)
    tables["events"] = _with_bounds(tables["events"], begins[rows], ends[rows])
    kept = RankTrace(
        trace.info, tables, known_steps=_numbered(steps[first:]), known_sorts=trace.sorts.of_rows(rows)
    )
    return between(kept, low, high), earlier


def _above(above: IntArray, wanted: Mask) -> Mask:
    """Which events lie above the wanted ones."""
    found = np.zeros(len(above), np.bool_)
    rows = distinct(above[wanted])
    while len(rows := rows[rows >= 0]):
        found[rows] = True
        rows = distinct(above[rows])
    return found


def _only(whole: Mapping[str, pl.DataFrame], rows: IntArray) -> dict[str, pl.DataFrame]:
    """The tables of some events, which are numbered anew in the order given."""
    place = positions(rows, whole["events"].height)
    tables = dict(whole)
    for name, table in whole.items():
        if name != "events" and "event" in table.columns:
            number = nullable(place[row_numbers(table["event"])])
            tables[name] = table.with_columns(event=number).filter(pl.col("event").is_not_null())
    if "captured" in tables:
        above = tables["captured"]["above"].to_numpy()
        moved_up = pl.Series(place[above], dtype=pl.Int64)  # the last place is that of none
        tables["captured"] = tables["captured"].with_columns(above=moved_up)
    events = whole["events"][rows]
    tables["events"] = events.with_columns(event=pl.int_range(pl.len(), dtype=pl.UInt32))
    return tables
