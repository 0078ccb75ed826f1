"""How long a step takes where the host runs ahead: as long as the device, without what the step before left it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.critical_path import critical_path
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace

ENQUEUED, DONE = 16_000, 28_900
"""Time that the host takes to enqueue a step, and the device to do it; µs."""


def running_ahead(builder: Any, steps: int = 4, *, since: float = 0) -> None:
    for step in range(steps):
        at = step * ENQUEUED
        builder.annotate(f"ProfilerStep#{step}", at, ENQUEUED)
        for part in range(4):
            builder.op("aten::mm", at + part * 3900, 3800)
            start = max(since, 20) + step * DONE + part * DONE / 4
            builder.launch("gemm", at + part * 3900 + 10, start, DONE / 4 - 2)


def lengths_ms(trace: RankTrace) -> list[float]:
    return [(step.end_ns - step.start_ns) / 1e6 for step in breakdown(trace).by_step]


def test_a_step_that_is_enqueued_sooner_than_done_takes_as_long_as_the_device(builder: Any) -> None:
    running_ahead(builder)
    trace = builder.read()
    assert lengths_ms(trace) == pytest.approx([28.9] * 4, abs=0.03)
    parts = [step.parts for step in breakdown(trace).by_step]
    assert [round(part.compute / part.total_ns, 2) for part in parts] == [1.0] * 4
    path = critical_path(trace)
    assert [step.total_ns / 1e6 for step in path.by_step] == pytest.approx([28.9] * 4, abs=0.03)


def test_events_belong_to_the_step_whose_host_made_them(builder: Any) -> None:
    running_ahead(builder)
    trace = builder.read()
    assert trace.of_kind("cpu_op")["step"].to_list() == [step for step in range(4) for _ in range(4)]
    assert trace.of_kind("kernel")["step"].to_list() == [step for step in range(4) for _ in range(4)]


@pytest.mark.parametrize("is_launched", [True, False])
def test_what_the_step_before_left_to_do_is_no_part_of_the_first(builder: Any, is_launched: bool) -> None:
    if is_launched:
        builder.launch("gemm", -500, -480, 12_480)
    else:
        builder.device("kernel", "gemm", 5, 11_995, correlation=999)
    running_ahead(builder, since=12_000)
    assert lengths_ms(builder.read()) == pytest.approx([28.9] * 4, abs=0.03)


def test_steps_that_wait_for_their_device_stay_as_they_are(builder: Any) -> None:
    for step in range(3):
        builder.annotate(f"ProfilerStep#{step}", step * 100, 90)
        builder.op("aten::mm", step * 100, 20)
        builder.launch("gemm", step * 100 + 5, step * 100 + 20, 50)
        builder.call("cudaDeviceSynchronize", step * 100 + 30, 45)
    trace = builder.read()
    assert step_windows(trace).equals(trace.steps)


def test_work_beside_all_of_the_next_step_leaves_steps_to_the_host(builder: Any) -> None:
    for step in range(3):
        builder.annotate(f"ProfilerStep#{step}", step * 100, 100)
        builder.op("aten::mm", step * 100, 20)
    builder.launch("Memcpy DtoH (Device -> Pinned)", 10, 20, 400, cat="gpu_memcpy", stream=9)
    trace = builder.read()
    assert step_windows(trace).equals(trace.steps)


def in_order(trace: RankTrace) -> None:
    windows = step_windows(trace)
    assert windows.height == trace.steps.height
    start, end = windows["start_ns"].to_list(), windows["end_ns"].to_list()
    assert all(low < high for low, high in zip(start, end, strict=True))
    assert all(high <= low for high, low in zip(end[:-1], start[1:], strict=True))
    for step in breakdown(trace).by_step:
        assert step.parts.total_ns == step.end_ns - step.start_ns


@given(data=st.data())
def test_windows_of_any_trace_follow_each_other(
    generated: ModuleType, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "any.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    in_order(read_trace(path).ranks[0])


def test_windows_of_real_traces_follow_each_other(real_trace: Path) -> None:
    in_order(read_trace(real_trace).ranks[0])
