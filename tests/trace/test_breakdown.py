"""Where time went, on traces whose truth is drawn by hand; µs in the drawings, ns in the results."""

from __future__ import annotations

from typing import Any

import pytest

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.records.breakdown import Breakdown, Parts
from pyrometer.trace.trace import RankTrace


def parts_us(parts: Parts) -> dict[str, float]:
    return {name: getattr(parts, name) / 1000 for name in parts.__struct_fields__ if getattr(parts, name)}


def measured(builder: Any) -> Breakdown:
    found = breakdown(builder.read())
    assert found.parts.total_ns == found.span_ns
    assert from_json(Breakdown, to_json(found)) == found
    return found


def test_each_moment_goes_to_the_first_class_that_was_active(builder: Any) -> None:
    builder.op("aten::mm", 0, 10)
    builder.launch("gemm", 2, 20, 30)  # compute 20..50
    builder.launch("ncclDevKernel_AllReduce", 11, 40, 30, stream=9)  # exposed 50..70
    builder.launch(
        "Memcpy HtoD (Pinned -> Device)", 17, 60, 20, cat="gpu_memcpy", stream=11
    )  # exposed 70..80
    builder.launch("Memset (Device)", 23, 75, 10, cat="gpu_memset")  # memset 80..85
    builder.call("cudaStreamSynchronize", 30, 60)  # sync 85..90
    builder.op("aten::add", 90, 10)
    found = measured(builder)
    assert parts_us(found.parts) == {
        "compute": 30,
        "exposed_comm": 20,
        "exposed_memcpy": 10,
        "memset": 5,
        "sync": 5,
        "runtime": 5 + 5 + 3,  # the launches at 2, 11 and 17, up to 20
        "host": 5 + 10,
        "idle": 1 + 1,
    }
    assert (found.communication_ns, found.overlapped_communication_ns) == (30_000, 10_000)
    assert (found.kernel_busy_ns, found.kernel_sum_ns, found.device_busy_ns) == (50_000, 60_000, 65_000)


def test_streams_sum_to_the_span_each(builder: Any) -> None:
    builder.launch("gemm", 0, 10, 30)
    builder.launch("ncclDevKernel_AllReduce", 5, 20, 40, stream=9)
    found = measured(builder)
    by_stream = {
        stream_breakdown.stream: parts_us(stream_breakdown.parts) for stream_breakdown in found.by_stream
    }
    assert by_stream == {7: {"compute": 30, "idle": 20}, 9: {"exposed_comm": 40, "idle": 10}}


def test_steps_are_windows_and_sum_to_their_own_length(builder: Any) -> None:
    builder.annotate("ProfilerStep#0", 0, 50)
    builder.annotate("ProfilerStep#1", 50, 50)
    builder.op("aten::mm", 10, 10)
    builder.launch("gemm", 20, 40, 20)
    builder.op("aten::add", 80, 10)
    found = measured(builder)
    assert [(step_breakdown.name, parts_us(step_breakdown.parts)) for step_breakdown in found.by_step] == [
        ("ProfilerStep#0", {"compute": 20, "runtime": 5, "host": 10, "idle": 25}),
        ("ProfilerStep#1", {"host": 10, "idle": 30}),
    ]


def test_a_step_annotation_is_not_work(builder: Any) -> None:
    builder.annotate("ProfilerStep#0", 0, 100)
    builder.annotate("my.span", 0, 100)
    builder.op("aten::mm", 0, 10)
    builder.op("aten::mm", 90, 10)
    assert parts_us(measured(builder).parts) == {"host": 20, "idle": 80}


def test_the_mark_of_a_step_is_not_work_in_old_files_either(builder: Any) -> None:
    builder.add("Operator", "ProfilerStep#5", 0, 100)
    builder.add("Operator", "aten::mm", 10, 20)
    builder.add("Operator", "aten::mm", 90, 10)
    assert parts_us(measured(builder).parts) == {"host": 30, "idle": 70}


def test_python_with_no_operator_below_is_other_but_not_on_threads_that_only_wait(builder: Any) -> None:
    builder.python("train.py(3): main", 0, 60)
    builder.python("threading.py(320): wait", 0, 100, tid=300)
    builder.op("aten::mm", 10, 10)
    builder.op("aten::mm", 90, 10)
    assert parts_us(measured(builder).parts) == {"host": 20, "other": 40, "idle": 30}


def test_operators_within_the_loader_are_data_loading(builder: Any) -> None:
    builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 40)
    builder.op("aten::stack", 10, 20)
    builder.op("aten::mm", 40, 10)
    found = measured(builder)
    assert parts_us(found.parts) == {"data": 40, "host": 10}
    assert found.start_ns == 0  # the wait before the first operator is the step's, too


def test_loading_in_the_background_costs_nothing(builder: Any) -> None:
    builder.python("torch/utils/data/dataloader.py(708): __next__", 0, 100, tid=200)
    builder.op("aten::stack", 0, 100, tid=200)
    builder.op("aten::mm", 0, 60)
    assert parts_us(measured(builder).parts) == {"data": 40, "host": 60}


def test_collectives_of_the_host_are_exposed_unless_other_operators_hide_them(builder: Any) -> None:
    builder.op("c10d::allreduce_", 0, 5)  # only enqueues
    builder.annotate("gloo:all_reduce", 5, 55, tid=200)
    builder.op("aten::mm", 20, 10)
    builder.op("_c10d_functional::wait_tensor", 40, 20)
    builder.op("aten::mm", 60, 10)
    found = measured(builder)
    assert parts_us(found.parts) == {"exposed_comm": 45, "host": 5 + 10 + 10}
    assert (found.communication_ns, found.overlapped_communication_ns) == (55_000, 10_000)


def test_the_span_reaches_over_work_and_the_steps_around_it(builder: Any) -> None:
    builder.annotate("ProfilerStep#0", 0, 200)
    builder.op("aten::mm", 20, 10)
    builder.launch("gemm", 22, 40.25, 9.501)
    builder.call("cudaDeviceSynchronize", 60, 100)
    found = measured(builder)
    assert (found.start_ns, found.end_ns) == (0, 200_000)
    assert found.parts == found.by_step[0].parts
    assert found.parts.sync == 100_000  # the host waits after the last work, and before the step ends


def test_without_steps_the_span_reaches_from_the_first_to_the_last_work(builder: Any) -> None:
    builder.annotate("my.span", 0, 200)
    builder.op("aten::mm", 20, 10)
    builder.launch("gemm", 22, 40.25, 9.501)
    builder.call("cudaDeviceSynchronize", 60, 100)
    found = measured(builder)
    assert (found.start_ns, found.end_ns) == (20_000, 49_751)


def test_a_step_in_which_nothing_runs_does_not_widen_the_span(builder: Any) -> None:
    builder.annotate("ProfilerStep#0", 0, 1000)
    builder.annotate("ProfilerStep#1", 1000, 100)
    builder.op("aten::mm", 1050, 10)
    found = measured(builder)
    assert (found.start_ns, found.end_ns) == (1_000_000, 1_100_000)


def test_work_of_a_warm_up_before_the_steps_stays_in_the_span(builder: Any) -> None:
    builder.op("aten::mm", 10, 10)
    builder.annotate("ProfilerStep#2", 100, 100)
    builder.op("aten::mm", 150, 10)
    found = measured(builder)
    assert (found.start_ns, found.end_ns) == (10_000, 200_000)


@pytest.mark.parametrize("mark", ["ProfilerStep#{}", "step {}"])
def test_the_wait_for_the_first_batch_belongs_to_its_step(builder: Any, mark: str) -> None:
    for number in range(4):
        at = 100 * number
        builder.annotate(mark.format(number), at, 100)
        builder.annotate("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 60)
        builder.op("aten::mm", at + 60, 20)
        builder.op("aten::relu", at + 80, 20)
    found = measured(builder)
    assert parts_us(found.parts) == {"data": 240, "host": 160}
    assert [parts_us(step_breakdown.parts) for step_breakdown in found.by_step] == [
        {"data": 60, "host": 40}
    ] * 4


def test_a_first_step_told_by_its_optimizer_begins_with_its_loading(builder: Any) -> None:
    for number in range(3):
        at = 100 * number
        builder.annotate("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 60)
        builder.op("aten::mm", at + 60, 20)
        builder.annotate("Optimizer.step#SGD.step", at + 80, 20)
        builder.op("aten::add_", at + 82, 10)
    found = measured(builder)
    assert [(step_breakdown.start_ns, step_breakdown.end_ns) for step_breakdown in found.by_step] == [
        (0, 100_000), (100_000, 200_000), (200_000, 300_000)
    ]  # fmt: skip
    assert found.parts.data == 180_000


def test_one_graph_launch_is_many_kernels_and_orphans_are_counted(builder: Any) -> None:
    graph = builder.call("cudaGraphLaunch", 0, 10)
    for i in range(5):
        builder.device("kernel", f"k{i}", 20 + 10 * i, 5, correlation=graph)
    builder.device("kernel", "lost", 90, 10, correlation=999)
    found = measured(builder)
    assert (found.num_kernels, found.num_orphans) == (6, 1)
    assert found.kernel_sum_ns == 35_000


def test_an_empty_trace_has_nothing(builder: Any) -> None:
    found = measured(builder)
    assert found == Breakdown(
        span_ns=0,
        start_ns=0,
        end_ns=0,
        parts=Parts(),
        device_busy_ns=0,
        kernel_busy_ns=0,
        kernel_sum_ns=0,
        num_kernels=0,
        num_orphans=0,
        communication_ns=0,
        overlapped_communication_ns=0,
    )


def test_device_events_without_stream_or_device_still_count(builder: Any) -> None:
    builder.add("kernel", "gemm", 0, 10, pid=0, tid=7)
    trace: RankTrace = builder.read()
    assert [
        (stream_breakdown.device, stream_breakdown.stream) for stream_breakdown in breakdown(trace).by_stream
    ] == [(-1, -1)]
