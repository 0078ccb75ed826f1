"""Gaps: why the device drained and what the host did meanwhile, on traces whose truth is drawn by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.records.waiting import Idle, IdleGap


def only_gap(builder: Any) -> IdleGap:
    found = idle(builder.read())
    assert from_json(Idle, to_json(found)) == found
    (gap,) = found.gaps
    return gap


def test_a_device_that_waits_for_its_launch_is_starved(builder: Any) -> None:
    builder.launch("a", 0, 10, 20)
    builder.op("aten::slow", 15, 185)
    builder.launch("b", 190, 200, 10)
    gap = only_gap(builder)
    assert (gap.start_ns, gap.dur_ns, gap.device) == (30_000, 170_000, 0)
    assert (gap.cause, gap.host.kind, gap.host.name) == ("launch_starvation", "operator", "aten::slow")
    assert gap.host.total_ns == 165_000  # the launch itself took 5
    assert (gap.previous, gap.previous_ns, gap.next) == ("a", 20_000, "b")
    assert gap.where.op == "aten::slow"
    assert gap.share == 1.0


def test_idle_time_after_short_kernels_is_told_apart(builder: Any) -> None:
    builder.launch("short", 0, 10, 9)
    builder.launch("long", 40, 50, 10)  # no longer below 10 µs
    builder.launch("Memset", 90, 100, 2, cat="gpu_memset")
    builder.launch("last", 200, 210, 5)
    found = idle(builder.read())
    assert found.after_short_ns == 31_000
    assert found.attributed_ns == 31_000 + 40_000 + 108_000


def test_a_long_gap_after_a_short_kernel_is_not_launching(builder: Any) -> None:
    builder.launch("short", 0, 10, 5)
    builder.op("aten::load", 20, 1_900)
    builder.launch("last", 1_990, 2_000, 5)
    found = idle(builder.read())
    assert (found.attributed_ns, found.after_short_ns) == (1_985_000, 0)
    assert sum(group.after_short_ns for group in found.groups) == found.after_short_ns


def test_without_a_device_nothing_follows_a_kernel(builder: Any) -> None:
    builder.op("aten::mm", 0, 5)
    builder.op("aten::mm", 100, 5)
    found = idle(builder.read())
    assert (found.of, found.after_short_ns, found.gaps[0].previous_ns) == ("host", 0, None)


def test_a_wait_of_the_host_drains_the_queue(builder: Any) -> None:
    builder.launch("a", 0, 10, 40)
    builder.call("cudaStreamSynchronize", 12, 45)
    builder.python("train.py(7): log", 58, 100)
    builder.launch("b", 160, 170, 10)
    gap = only_gap(builder)
    assert (gap.cause, gap.host.kind, gap.host.name) == ("sync_drain", "python", "train.py(7): log")
    assert (gap.where.file, gap.where.line, gap.where.function) == ("train.py", 7, "log")


def test_a_pageable_copy_that_was_waited_for_drains_too(builder: Any) -> None:
    call = builder.call("cudaMemcpyAsync", 0, 30)
    builder.device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 10, 15, correlation=call)
    builder.launch("b", 60, 70, 10)
    assert only_gap(builder).cause == "sync_drain"


@pytest.mark.parametrize(("starts", "cause"), [(45, "turnaround"), (95, "dependency")])
def test_work_that_was_launched_in_time_waits_for_the_device_or_for_something_else(
    builder: Any, starts: int, cause: str
) -> None:
    builder.launch("a", 0, 10, 30)
    builder.launch("b", 20, starts, 10)
    assert only_gap(builder).cause == cause


def test_an_orphan_has_no_known_cause(builder: Any) -> None:
    builder.launch("a", 0, 10, 30)
    builder.device("kernel", "lost", 60, 10, correlation=999)
    assert only_gap(builder).cause == "unknown"


@pytest.mark.parametrize(
    ("draw", "kind", "name"),
    [
        (lambda b: b.annotate("phase:data", 30, 100), "data_loading", "phase:data"),
        (lambda b: b.python("Python GC", 30, 100), "garbage_collection", "Python GC"),
        (lambda b: b.call("cudaMalloc", 30, 100), "allocator", "cudaMalloc"),
        (lambda b: b.call("cudaEventSynchronize", 35, 100), "sync", "cudaEventSynchronize"),
        (lambda b: b.call("cudaGraphInstantiate", 30, 100), "runtime", "cudaGraphInstantiate"),
        (lambda b: b.op("aten::item", 30, 100), "operator", "aten::item"),
        (lambda b: b.python("train.py(3): main", 30, 100), "python", "train.py(3): main"),
        (lambda b: b.annotate("Optimizer.step#SGD.step", 30, 100), "annotation", "Optimizer.step#SGD.step"),
        (lambda b: b.annotate("ProfilerStep#3", 30, 100), "nothing", None),
    ],
)
def test_what_the_host_did_is_named(builder: Any, draw: Any, kind: str, name: str | None) -> None:
    builder.launch("a", 0, 10, 20)
    draw(builder)
    builder.launch("b", 140, 150, 10)
    gap = only_gap(builder)
    assert (gap.host.kind, gap.host.name) == (kind, name)


def test_operators_within_the_loader_are_named_after_the_loader(builder: Any) -> None:
    builder.launch("a", 0, 10, 20)
    builder.annotate("enumerate(DataLoader)#_Iter.__next__", 30, 100)
    builder.op("aten::stack", 35, 90)
    builder.launch("b", 140, 150, 10)
    assert only_gap(builder).host.kind == "data_loading"


def test_the_launching_thread_is_asked_and_if_it_did_nothing_the_busiest(builder: Any) -> None:
    builder.op("aten::main", 0, 200)
    builder.launch("a", 0, 10, 20, tid=200)
    builder.op("aten::backward", 40, 90, tid=200)
    builder.launch("b", 140, 150, 10, tid=200)
    assert only_gap(builder).host.name == "aten::backward"


def test_where_the_launching_thread_did_nothing_another_one_explains_the_gap(builder: Any) -> None:
    builder.launch("a", 0, 10, 20)
    builder.call("cudaStreamSynchronize", 12, 120)
    builder.launch("b", 140, 150, 10, tid=200)
    gap = only_gap(builder)
    assert (gap.cause, gap.host.kind) == ("sync_drain", "sync")


def test_leading_trailing_and_profiler_gaps_are_set_apart(builder: Any) -> None:
    builder.op("aten::start", 0, 20)
    builder.launch("a", 20, 30, 10)
    builder.add("overhead", "Buffer Flush", 45, 40, pid=-1, tid=0)
    builder.launch("b", 90, 100, 10)
    builder.add("overhead", "Lazy Function Loading", 110, 20, pid=-1, tid=0)
    builder.launch("c", 135, 140, 10)
    builder.op("aten::end", 150, 30)
    found = idle(builder.read())
    assert (found.leading_ns, found.trailing_ns, found.profiler_ns) == (30_000, 30_000, 60_000)
    assert (found.attributed_ns, found.num_gaps) == (30_000, 1)
    assert found.idle_ns == 150_000


def test_long_gaps_come_first_and_the_rest_is_summed(builder: Any) -> None:
    for i in range(6):
        builder.launch(f"k{i}", 100 * i * (i + 1) / 2, 100 * i * (i + 1) / 2 + 10, 10)
    found = idle(builder.read(), top=2)
    assert [gap.dur_ns for gap in found.gaps] == [490_000, 390_000]
    assert (found.num_other_gaps, found.other_gaps_ns) == (3, 570_000)
    (group,) = found.groups
    assert (group.cause, group.num_gaps, group.total_ns) == ("launch_starvation", 5, 1_450_000)
    assert sum(found.host_ns.values()) == found.attributed_ns


def test_each_device_has_gaps_of_its_own(builder: Any) -> None:
    builder.device("kernel", "a", 0, 100, device=0)
    builder.device("kernel", "b", 0, 10, device=1)
    builder.device("kernel", "c", 40, 10, device=1)
    found = idle(builder.read())
    assert [(gap.device, gap.dur_ns) for gap in found.gaps] == [(1, 30_000)]
    assert (found.trailing_ns, found.idle_ns) == (50_000, 80_000)


def test_gaps_of_a_stream_are_told_apart_by_the_launch(builder: Any) -> None:
    builder.launch("a", 0, 10, 10)  # ..20
    builder.launch("b", 25, 32, 8)  # launched late: 12
    builder.launch("c", 30, 45, 5)  # in time, short: 5
    builder.launch("d", 40, 100, 10)  # in time, long: 50
    builder.device("kernel", "lost", 117, 3)  # 7
    (stream,) = idle(builder.read()).by_stream
    assert (stream.device, stream.stream, stream.num_gaps) == (0, 7, 4)
    assert (stream.host_wait_ns, stream.kernel_wait_ns, stream.other_wait_ns, stream.unknown_ns) == (
        12_000,
        5_000,
        50_000,
        7_000,
    )
    assert stream.idle_ns == 74_000


def test_without_a_device_idle_is_the_time_without_operators(builder: Any) -> None:
    builder.python("train.py(3): main", 0, 200)
    builder.op("aten::mm", 10, 40)
    builder.annotate("phase:data", 50, 60)
    builder.op("aten::stack", 60, 20)
    builder.op("aten::mm", 120, 30)
    found = idle(builder.read())
    assert found.of == "host"
    (gap,) = found.gaps
    assert (gap.start_ns, gap.dur_ns, gap.device, gap.cause) == (50_000, 70_000, None, "no_operator")
    assert (gap.host.kind, gap.host.name) == ("data_loading", "phase:data")
    assert found.host_ns["python"] == 10_000


def test_an_empty_trace_has_no_gaps(builder: Any) -> None:
    found = idle(builder.read())
    assert (found.of, found.idle_ns, found.gaps, found.by_stream) == ("host", 0, [], [])


def test_the_garbage_collector_is_placed_in_the_function_that_it_interrupted(builder: Any) -> None:
    builder.launch("a", 0, 10, 20)
    builder.python("train.py(3): main", 30, 100)
    builder.python("Python GC", 40, 80)
    builder.launch("b", 140, 150, 10)
    gap = only_gap(builder)
    assert (gap.host.kind, gap.where.file, gap.where.line) == ("garbage_collection", "train.py", 3)


def test_a_trace_of_a_device_alone_has_gaps_with_nothing_recorded(builder: Any) -> None:
    builder.device("kernel", "a", 0, 10)
    builder.device("kernel", "b", 30, 10)
    gap = only_gap(builder)
    assert (gap.cause, gap.host.kind, gap.host.name) == ("unknown", "nothing", None)


@pytest.mark.parametrize(
    ("kernels", "pause_us", "between"),
    [(0, 200, 2), (1, 200, 2), (2, 200, 0), (0, 2000, 0)],
    ids=["nothing", "a copy", "work", "too long"],
)
def test_pauses_between_collectives_that_the_host_issues_one_by_one(
    builder: Any, kernels: int, pause_us: float, between: int
) -> None:
    clock = 0.0
    for number in range(3):
        builder.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", clock, clock + 6, 20, stream=20)
        clock += 26
        for _ in range(kernels if number < 2 else 0):
            builder.launch("copy", clock + 20, clock + 26, 2)
            clock += 28
        clock += pause_us
    causes = [group for group in idle(builder.read()).groups if group.cause == "between_collectives"]
    assert sum(group.num_gaps for group in causes) == (between and 2 * (1 + kernels))
