"""Interval algebra against sets of whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.timing.intervals import (
    EMPTY,
    Intervals,
    Lanes,
    clip,
    complement,
    covered,
    intersect,
    length,
    merge,
    subtract,
    union,
)

LIMIT = 60
raw = st.lists(st.tuples(st.integers(0, LIMIT), st.integers(0, LIMIT)), max_size=12)


def intervals(pairs: list[tuple[int, int]]) -> Intervals:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return union(both[:, 0], both[:, 1])


def points(found: Intervals) -> set[int]:
    return {
        p
        for low, high in zip(found.start.tolist(), found.end.tolist(), strict=True)
        for p in range(low, high)
    }


def of(pairs: list[tuple[int, int]]) -> set[int]:
    return {p for low, high in pairs for p in range(low, high)}


def is_canonical(found: Intervals) -> bool:
    return bool((found.start < found.end).all() and (found.start[1:] > found.end[:-1]).all())


@given(raw)
def test_union_covers_the_same_points_and_is_canonical(a: list[tuple[int, int]]) -> None:
    found = intervals(a)
    assert points(found) == of(a)
    assert is_canonical(found)
    assert length(found) == len(of(a))


@given(raw, raw)
def test_merge_intersect_and_subtract_are_set_operations(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    one, two = intervals(a), intervals(b)
    for found, truth in (
        (merge(one, two), of(a) | of(b)),
        (intersect(one, two), of(a) & of(b)),
        (subtract(one, two), of(a) - of(b)),
    ):
        assert points(found) == truth
        assert is_canonical(found)


@given(raw, st.integers(0, LIMIT), st.integers(0, LIMIT))
def test_complement_and_clip_keep_to_their_bounds(a: list[tuple[int, int]], low: int, high: int) -> None:
    window = set(range(low, high))
    assert points(clip(intervals(a), low, high)) == of(a) & window
    assert points(complement(intervals(a), low, high)) == window - of(a)


@given(raw, raw)
def test_covered_measures_each_window(a: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    both = np.array(windows, np.int64).reshape(-1, 2)
    found = covered(intervals(a), both[:, 0], both[:, 1])
    assert found.tolist() == [len(of(a) & set(range(*window))) for window in windows]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, LIMIT), st.integers(0, LIMIT)), max_size=12))
def test_lanes_keep_tracks_apart(rows: list[tuple[int, int, int]]) -> None:
    low = 1_669_783_687_464_181_000
    lanes = Lanes(low, low + LIMIT)
    table = np.array(rows, np.int64).reshape(-1, 3)
    found = lanes.union(table[:, 0], table[:, 1] + low, table[:, 2] + low)
    truth = {(lane, p) for lane, start, end in rows for p in range(start, end)}
    assert length(found) == len(truth)
    assert points(lanes.flatten(found)) == {low + p for _, p in truth}
    assert set(lanes.lane_of(found).tolist()) == {lane for lane, _ in truth}


def test_nothing_in_nothing_out() -> None:
    assert length(EMPTY) == 0
    assert merge() == EMPTY
    assert covered(EMPTY, np.array([0]), np.array([9])).tolist() == [0]
    assert points(complement(EMPTY, 2, 4)) == {2, 3}


def test_absolute_unix_times_stay_exact() -> None:
    start = np.array([1_669_783_687_464_181_001])
    assert length(Intervals(start, start + 1)) == 1
    assert covered(Intervals(start, start + 3), start + 1, start + 9).tolist() == [2]
