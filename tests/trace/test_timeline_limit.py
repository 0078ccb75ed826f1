"""A timeline of few rows: about as many as asked for, none of them long, and nothing lost."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from representative import every

from pyrometer.trace.analysis.timeline import SMALL, timeline
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.view import view_trace

PERIOD_US = 10
BUSY_US = 4


def even(builder: Any, num: int, *, threads: int = 1, jitter: float = 0, since: float = 0) -> None:
    """Operators 40 % of the time, one after the other on each thread."""
    chance = random.Random(7)
    for i in range(num // threads):
        for thread in range(threads):
            at = round(since + PERIOD_US * i + jitter * chance.random(), 3)
            builder.op(f"aten::{i % 7}", at, BUSY_US, tid=100 + thread)


def most(values: pl.Series) -> int:
    return int(max(values.to_list()))


@pytest.mark.parametrize("jitter", [0, 5.5])
@pytest.mark.parametrize("threads", every(3, [2, 1, 5]))
def test_equal_slices_keep_their_timeline(builder: Any, threads: int, jitter: float) -> None:
    even(builder, 20_000, threads=threads, jitter=jitter)
    table = timeline(builder.read(), limit=2000)

    assert 1800 <= table.height <= 2000
    assert table["num_events"].sum() == 20_000
    span_us = PERIOD_US * 20_000 / threads
    merged = table.filter(pl.col("num_events") > 1)
    assert most(merged["dur_ns"]) <= 1000 * 2 * span_us * threads / 2000
    rows = table.group_by("track").len()["len"]
    assert min(rows.to_list()) >= 0.8 * 2000 / threads


def test_a_merged_slice_tells_how_busy_it_is(builder: Any) -> None:
    even(builder, 20_000)
    view = view_trace(builder.read(), max_slices=2000)

    drawn = np.array(view.slices.dur_ns)[list(itertools.accumulate(view.merged.slice))]
    share = np.array(view.merged.busy_ns) / drawn
    assert share.min() >= 0.39
    assert share.max() <= 0.6
    assert sum(view.merged.busy_ns) + sum(view.slices.dur_ns) - drawn.sum() == 20_000 * BUSY_US * 1000


@pytest.mark.parametrize("more", [1, 20, 400])
@pytest.mark.parametrize("jitter", [0, 5.5])
def test_little_is_lost_just_above_the_limit(builder: Any, more: int, jitter: float) -> None:
    even(builder, 2000 + more, jitter=jitter)
    rows = timeline(builder.read(), limit=2000)

    assert 1800 <= rows.height <= 2000
    assert most(rows["num_events"]) <= 3


def test_a_burst_in_a_long_recording_keeps_its_rows(builder: Any) -> None:
    builder.op("first", 0, 50)
    even(builder, 5000, since=10_000_000)
    builder.op("last", 60_000_000, 50)
    rows = timeline(builder.read(), limit=1000)

    assert 900 <= rows.height <= 1000
    assert most(rows["num_events"]) <= 10


def test_long_slices_stay_single(builder: Any) -> None:
    even(builder, 4000)
    for i in range(10):
        builder.op("long", PERIOD_US * 4000 + 3000 * i, 2000)
    rows = timeline(builder.read(), limit=500)

    assert rows.filter(name="long")["num_events"].to_list() == [1] * 10
    assert 450 <= rows.height <= 500


def test_a_row_per_lane_remains(builder: Any) -> None:
    even(builder, 300, threads=30)
    rows = timeline(builder.read(), limit=5)

    assert rows["num_events"].to_list() == [10] * 30
    assert set(rows["name"]) == {SMALL}


def test_it_is_the_same_each_time(builder: Any) -> None:
    even(builder, 3000, threads=3, jitter=5.5)
    trace = builder.read()

    assert timeline(trace, limit=700).equals(timeline(trace, limit=700))


def recorded(builder: Any, slices: list[tuple[int, int, int]]) -> RankTrace:
    ends: dict[int, int] = {}
    for thread, gap, dur in slices:
        start = ends.get(thread, 0) + gap
        ends[thread] = start + dur
        builder.op("op", start, dur, tid=thread)
    trace: RankTrace = builder.read()
    return trace


@given(
    slices=st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 1000) | st.just(10**6), st.integers(1, 3000)),
        min_size=1,
        max_size=150,
    ),
    limit=st.integers(1, 160),
)
def test_any_slices(slices: list[tuple[int, int, int]], limit: int, builder: Any) -> None:
    builder.events.clear()
    trace = recorded(builder, slices)
    whole, rows = timeline(trace), timeline(trace, limit=limit)
    lanes = whole.select("track", "lane").unique().height

    assert rows["num_events"].sum() == whole.height
    assert min(limit, whole.height) - max(10, limit // 10) <= rows.height <= max(limit, lanes)
    single = rows.filter(pl.col("num_events") == 1)
    assert single.join(whole, on=whole.columns, nulls_equal=True).height == single.height
