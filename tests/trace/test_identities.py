"""What must add up, on real traces and on random ones."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.copies import copies
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.analysis.synchronisation import sync_points
from pyrometer.trace.kinds import HOST
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.timing.innermost import innermost
from pyrometer.trace.timing.intervals import length, union
from pyrometer.trace.trace import RankTrace


def check(trace: RankTrace) -> None:
    parts_sum_to_wall_time(trace)
    self_times_sum_to_what_runs_on_a_track(trace)
    gaps_sum_to_idle_time(trace)
    waits_and_copies_are_within_their_totals(trace)


def parts_sum_to_wall_time(trace: RankTrace) -> None:
    found = breakdown(trace)
    assert found.parts.total_ns == found.span_ns == found.end_ns - found.start_ns
    for part in found.parts.__struct_fields__:
        assert getattr(found.parts, part) >= 0
    for step in found.by_step:
        assert step.parts.total_ns == step.end_ns - step.start_ns
    for stream in found.by_stream:
        assert stream.parts.total_ns == found.span_ns
    on_device = ("compute", "exposed_comm", "exposed_memcpy", "memset")
    if trace.activity.has_device:
        assert sum(getattr(found.parts, part) for part in on_device) == found.device_busy_ns
        assert found.parts.exposed_comm == found.communication_ns - found.overlapped_communication_ns
    assert found.kernel_busy_ns <= found.kernel_sum_ns
    assert found.device_busy_ns <= found.span_ns


def self_times_sum_to_what_runs_on_a_track(trace: RankTrace) -> None:
    host = trace.of_kind(*HOST)
    pieces = innermost(trace)
    by_track: dict[int, int] = defaultdict(int)
    lanes = pieces.start // pieces.lanes.width
    for lane, ns in zip(lanes.tolist(), (pieces.end - pieces.start).tolist(), strict=True):
        by_track[lane] += ns
    assert (pieces.start[1:] >= pieces.end[:-1]).all()
    for (track,), group in host.partition_by("track", as_dict=True).items():
        covered = length(union(group["start_ns"].to_numpy(), group["end_ns"].to_numpy()))
        assert group["self_ns"].sum() == covered
        assert by_track[int(track)] == covered


def gaps_sum_to_idle_time(trace: RankTrace) -> None:
    found = idle(trace)
    assert found.idle_ns == found.attributed_ns + found.leading_ns + found.trailing_ns + found.profiler_ns
    assert sum(gap.dur_ns for gap in found.gaps) + found.other_gaps_ns == found.attributed_ns
    assert len(found.gaps) + found.num_other_gaps == found.num_gaps
    assert sum(group.total_ns for group in found.groups) == found.attributed_ns
    assert sum(group.num_gaps for group in found.groups) == found.num_gaps
    assert sum(found.host_ns.values()) == found.attributed_ns
    assert all(ns >= 0 for ns in found.host_ns.values())
    durations = [gap.dur_ns for gap in found.gaps]
    assert durations == sorted(durations, reverse=True)
    for stream in found.by_stream:
        parts = stream.host_wait_ns + stream.kernel_wait_ns + stream.other_wait_ns + stream.unknown_ns
        assert stream.idle_ns == parts


def waits_and_copies_are_within_their_totals(trace: RankTrace) -> None:
    waits = sync_points(trace)
    for point in waits.points:
        assert 0 <= point.stalled_ns <= point.total_ns
        assert point.max_ns <= point.total_ns
    assert sum(point.total_ns for point in waits.points) == waits.total_ns
    assert sum(point.num_calls for point in waits.points) == waits.num_calls
    assert waits.device_idle_after_ns <= idle(trace).idle_ns
    moved = copies(trace)
    assert sum(kind.total_ns for kind in moved.kinds) == moved.total_ns
    for kind in moved.kinds:
        assert kind.overlapped_ns + kind.exposed_ns <= kind.busy_ns <= kind.total_ns


def test_real_traces_add_up(real_trace: Path) -> None:
    check(read_trace(real_trace).ranks[0])


@given(data=st.data())
def test_random_traces_add_up(
    data: st.DataObject, generated: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "random_identities.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    check(read_trace(path).ranks[0])


def test_pieces_of_host_time_belong_to_the_innermost_event(builder: Any) -> None:
    builder.op("outer", 0, 100)
    builder.op("inner", 20, 30)
    builder.op("other thread", 0, 100, tid=200)
    trace: RankTrace = builder.read()
    pieces = innermost(trace)
    track = trace.events.filter(pl.col("name") == "outer")["track"].to_numpy().astype(np.int64)
    overlaps = pieces.within(track, np.array([10_000]), np.array([60_000]))
    names = trace.events["name"].gather(pl.Series(overlaps.event, dtype=pl.UInt32)).to_list()
    assert list(zip(names, overlaps.ns.tolist(), strict=True)) == [
        ("outer", 10_000),
        ("inner", 30_000),
        ("outer", 10_000),
    ]
