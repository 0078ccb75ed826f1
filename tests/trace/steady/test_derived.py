"""Records with stretches cut out, without their first steps or of a part of their span still add up, whatever they hold."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.analysis.what_if import what_if
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.steady.derived import between, from_step, moved, without_stretches
from pyrometer.trace.timing.intervals import clip, complement, intersect, length, union
from pyrometer.trace.trace import RankTrace


def adds_up(trace: RankTrace) -> None:
    found = breakdown(trace)
    assert found.parts.total_ns == found.span_ns == trace.activity.span_ns
    assert all(step.parts.total_ns == step.end_ns - step.start_ns for step in found.by_step)
    assert found.device_busy_ns <= found.span_ns
    assert idle(trace).idle_ns >= 0
    assert what_if(trace).span_ns == trace.activity.span_ns
    assert trace.events["event"].to_list() == list(range(trace.events.height))
    assert (trace.events["dur_ns"] >= 0).all()


@settings(max_examples=20, phases=[Phase.generate])
@given(data=st.data())
def test_random_records_add_up(
    data: st.DataObject, generated: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "derived.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    trace = read_trace(path).ranks[0]
    low, high = trace.activity.start_ns, trace.activity.end_ns
    ends = (
        np.sort(np.array(data.draw(st.lists(st.integers(0, 80_000), min_size=4, max_size=4)), np.int64)) + low
    )
    idle_time = complement(trace.activity.device, low, high)
    cut = intersect(clip(union(ends[::2], ends[1::2]), low, high), idle_time)
    shorter = without_stretches(trace, cut)
    adds_up(shorter)
    # A step that nothing is left of does not widen the span.
    assert shorter.activity.span_ns <= trace.activity.span_ns - length(cut)
    assert shorter.device_work["dur_ns"].to_list() == trace.device_work["dur_ns"].to_list()
    adds_up(between(trace, *sorted((int(ends[1]), int(ends[2])))))
    if trace.steps.height > 1:
        later, earlier = from_step(trace, 1)
        adds_up(later)
        assert later.device_work.height + earlier.height == trace.device_work.height


def test_a_short_step_stays_where_it_is_whole_and_a_part_of_one_goes(tmp_path: Path) -> None:
    spans = [(0, 10), (10, 40), (40, 140), (140, 240)]
    events = [
        {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": end - begin}
        for number, (begin, end) in enumerate(spans)
        for cat, name in (("user_annotation", f"ProfilerStep#{number}"), ("cpu_op", "aten::mul"))
    ]
    path = tmp_path / "short.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    trace = read_trace(path).ranks[0]
    ends = trace.steps["end_ns"].to_list()
    assert between(trace, trace.span[0], ends[2]).steps["end_ns"].to_list() == ends[:3]
    assert between(trace, trace.span[0], ends[2] + 5_000).steps.height == 3


def test_moments_after_the_last_stretch_stay() -> None:
    cut = union(np.array([10, 30]), np.array([20, 35]))
    assert moved(np.array([0, 10, 25, 30, 35, 40]), cut).tolist() == [15, 25, 30, 35, 35, 40]
