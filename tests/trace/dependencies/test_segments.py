"""The segments of a thread: its time belongs to the innermost event, and none of it is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pyrometer.trace.dependencies.segments import Segments, host_segments, split
from pyrometer.trace.kinds import HOST
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace


def segments_of(trace: RankTrace, low: int, high: int) -> Segments:
    return host_segments(trace.events["track"].to_numpy(), trace.links.pieces, low, high)


def shown(trace: Any) -> list[tuple[str | None, int, int]]:
    """Name, start and end in µs of each segment."""
    events = trace.events
    low, high = int(events["start_ns"].min()), int(events["end_ns"].max())
    segments = segments_of(trace, low, high)
    names = [events["name"][row] if row >= 0 else None for row in segments.event.tolist()]
    return list(zip(names, (segments.start // 1000).tolist(), (segments.end // 1000).tolist(), strict=True))


def test_nested_events_share_the_time_of_their_thread(builder: Any) -> None:
    builder.op("outer", 0, 100)
    builder.op("inner", 20, 30)
    builder.call("cudaMalloc", 30, 10)
    builder.op("next", 120, 10)
    assert shown(builder.read()) == [
        ("outer", 0, 20),
        ("inner", 20, 30),
        ("cudaMalloc", 30, 40),
        ("inner", 40, 50),
        ("outer", 50, 100),
        (None, 100, 120),
        ("next", 120, 130),
    ]


def test_an_event_that_outlasts_the_one_it_begins_in_goes_on_after_it(builder: Any) -> None:
    builder.python("step.py(1): enter", 0, 50)
    builder.annotate("ProfilerStep#0", 40, 100)
    builder.op("aten::mm", 60, 20)
    assert shown(builder.read()) == [
        ("step.py(1): enter", 0, 50),
        ("ProfilerStep#0", 50, 60),
        ("aten::mm", 60, 80),
        ("ProfilerStep#0", 80, 140),
    ]


def test_segments_can_be_cut_anywhere(builder: Any) -> None:
    builder.op("one", 0, 100)
    builder.op("other", 0, 100, tid=5)
    trace = builder.read()
    segments = segments_of(trace, 0, 100_000)
    track = int(segments.lane[0])
    cut = split(segments, np.array([track, track, 999]), np.array([30_000, 100_000, 50_000]))
    assert cut.start.tolist() == [0, 30_000, 0]
    assert cut.end.tolist() == [30_000, 100_000, 100_000]


def test_the_segments_of_an_event_are_its_own_time(real_trace: Path) -> None:
    trace = read_trace(real_trace).ranks[0]
    events = trace.events
    host = events.filter(events["kind"].cast(str).is_in([kind.value for kind in HOST]))
    if not host.height:
        return
    segments = segments_of(trace, int(host["start_ns"].min()), int(host["end_ns"].max()))
    known = segments.event >= 0
    own = np.zeros(events.height, np.int64)
    np.add.at(own, segments.event[known], (segments.end - segments.start)[known])
    rows = host["event"].to_numpy()
    self_ns = events["self_ns"].to_numpy()[rows]
    assert (own[rows] == self_ns).all()
