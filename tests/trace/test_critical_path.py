"""The critical path of traces whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.critical_path import critical_path, critical_path_segments
from pyrometer.trace.analysis.registry import analyses
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.gains import CriticalPath


def on_path(path: CriticalPath) -> dict[str, int]:
    """µs on the path by name."""
    return {op.name: op.ns // 1000 for op in path.by_op}


def two_streams(builder: Any) -> Any:
    """Two kernels side by side, the one on stream 7 longer; then the host waits for the device."""
    builder.op("aten::first", 0, 10)
    builder.launch("long", 2, 10, 1000, stream=7)
    builder.op("aten::second", 10, 10)
    builder.launch("short", 12, 20, 300, stream=8)
    builder.op("aten::end", 30, 1000)
    builder.call("cudaDeviceSynchronize", 35, 985)
    return builder.read()


def test_of_two_streams_the_longer_is_critical(builder: Any) -> None:
    path = critical_path(two_streams(builder))
    found = on_path(path)
    assert found["long"] == 1000
    assert "short" not in found
    assert path.mostly == "compute"
    slack = {op_slack.name: op_slack for op_slack in path.slack}
    assert slack["short"].least_slack_ns == (1010 - 320) * 1000


def test_classes_sum_to_the_span(builder: Any) -> None:
    path = critical_path(two_streams(builder))
    assert sum(path.by_class.values()) == path.total_ns == 1030_000
    assert path.by_class["compute"] == 1000_000
    assert path.by_class["launch"] == 8_000  # from the start of the call to the start of the kernel
    assert path.by_class["sync"] == 10_000  # the thread wakes up
    assert path.by_class["host_op"] == 2_000 + 10_000


def test_a_launch_bound_run_is_bound_by_the_host(builder: Any) -> None:
    for i in range(50):
        builder.op("aten::add", i * 20, 20)
        builder.launch("tiny", i * 20 + 10, i * 20 + 18, 2)
    path = critical_path(builder.read())
    assert path.mostly == "host"
    assert path.by_class["compute"] == 0  # the last operator outlasts the last kernel


def test_copies_by_which_a_step_waits_are_on_the_path(builder: Any) -> None:
    builder.op("aten::to", 0, 520)
    builder.launch("Memcpy HtoD (Pageable -> Device)", 5, 10, 500, cat="gpu_memcpy", call_us=510)
    builder.op("aten::mm", 520, 10)
    builder.launch("gemm", 522, 530, 100)
    path = critical_path(builder.read())
    assert path.mostly == "copies"
    assert path.by_class["memcpy"] >= 500_000


def test_the_backward_thread_is_on_the_path_and_the_main_thread_waits(builder: Any) -> None:
    builder.op("aten::linear", 0, 100, **{"Sequence number": 1, "Fwd thread id": 0})
    for i in range(4):
        builder.op(
            "autograd::engine::evaluate_function: AddmmBackward0",
            200 + i * 100,
            90,
            tid=7,
            **{"Sequence number": 1, "Fwd thread id": 1},
        )
    builder.op("aten::optimizer", 700, 50)
    path = critical_path(builder.read())
    found = on_path(path)
    assert found["autograd::engine::evaluate_function: AddmmBackward0"] == 360
    assert found["aten::linear"] == 100
    assert any("backward passes" in note for note in path.notes)


def test_work_waits_for_the_event_that_a_record_names(builder: Any) -> None:
    builder.op("aten::a", 0, 60)
    builder.launch("first", 2, 10, 500, stream=7)
    recorded = builder.call("cudaEventRecord", 12, 2)
    waited = builder.call("cudaStreamWaitEvent", 16, 2)
    builder.add(
        "cuda_sync",
        "Stream Wait Event",
        16,
        2,
        pid=0,
        tid=8,
        correlation=waited,
        device=0,
        stream=8,
        cuda_sync_kind="Stream Wait Event",
        wait_on_stream=7,
        wait_on_cuda_event_record_corr_id=recorded,
        wait_on_cuda_event_id=1,
    )
    builder.launch("second", 20, 511, 100, stream=8)
    path = critical_path(builder.read())
    assert on_path(path)["first"] == 500
    assert on_path(path)["second"] == 100
    assert path.by_class["idle"] == 1_000
    assert not path.notes


def test_without_records_the_wait_is_inferred_and_said(builder: Any) -> None:
    builder.op("aten::a", 0, 60)
    builder.launch("first", 2, 10, 500, stream=7)
    builder.call("cudaStreamWaitEvent", 16, 2)
    builder.launch("second", 20, 511, 100, stream=8)
    path = critical_path(builder.read())
    assert on_path(path)["first"] == 500
    assert any("inferred" in note for note in path.notes)


def test_data_loading_is_on_the_path(builder: Any) -> None:
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i}", i * 1000, 1000)
        builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", i * 1000, 700)
        builder.op("aten::stack", i * 1000, 600)
        builder.op("aten::mm", i * 1000 + 700, 300)
    path = critical_path(builder.read())
    assert path.mostly == "data"
    assert [step.by_class["data"] for step in path.by_step] == [700_000] * 3
    assert [step.mostly for step in path.by_step] == ["data"] * 3
    assert sum(step.total_ns for step in path.by_step) == path.total_ns


def test_one_graph_launch_starts_many_kernels(builder: Any) -> None:
    builder.op("replay", 0, 20)
    graph = builder.call("cudaGraphLaunch", 5, 10)
    for i in range(10):
        builder.device("kernel", f"k{i}", 20 + i * 50, 49, stream=7, correlation=graph)
    path = critical_path(builder.read())
    assert path.by_class["compute"] == 490_000
    assert path.by_class["launch"] == 15_000
    assert path.by_class["idle"] == 9_000


@pytest.mark.parametrize("content", ["nothing", "instant", "device", "host"])
def test_traces_with_almost_nothing_give_an_empty_path(builder: Any, content: str) -> None:
    if content == "instant":
        builder.op("aten::empty", 5, 0)
    elif content == "device":
        builder.device("kernel", "k", 3, 4)
    elif content == "host":
        builder.annotate("alone", 1, 9)
    path = critical_path(builder.read())
    assert sum(path.by_class.values()) == path.total_ns == {"device": 4000, "host": 9000}.get(content, 0)
    assert path.mostly == {"device": "compute", "host": "host"}.get(content, "none")


def test_a_broken_clock_gives_one_unexplained_stretch(builder: Any) -> None:
    builder.op("aten::early", 1, 1)
    builder.op("aten::late", 4_000_000_000_000_000, 1)
    path = critical_path(builder.read())
    assert path.by_class["untraced"] == path.total_ns


def test_the_record_survives_json(builder: Any) -> None:
    path = critical_path(two_streams(builder))
    assert from_json(CriticalPath, to_json(path)) == path
    assert {"critical_path", "critical_path_segments", "what_if", "recoverable"} <= set(analyses())


def test_all_segments_are_there_in_order(builder: Any) -> None:
    trace = two_streams(builder)
    pieces = critical_path_segments(trace)
    assert pieces["name"].drop_nulls().to_list()[:2] == ["aten::first", "cudaLaunchKernel"]
    assert pieces.height == critical_path(trace).num_segments


def test_real_records_of_waiting_are_used(real_traces: Path) -> None:
    for name in ("alexnet_cuda_sync", "event_sync", "event_sync_multi_stream"):
        path = critical_path(read_trace(real_traces / f"{name}.json.gz").ranks[0])
        assert not any("synchronisation record" in note or "between streams" in note for note in path.notes)
        assert path.by_class["idle"] <= 0.001 * path.total_ns
    event = critical_path(read_trace(real_traces / "event_sync.json.gz").ranks[0])
    assert on_path(event)["at::cuda::(anonymous namespace)::spin_kernel(long)"] == 36


def test_a_compute_bound_run_and_a_loading_run_are_told_apart(real_traces: Path) -> None:
    compute = critical_path(read_trace(real_traces / "v100_ns_5steps.json.gz").ranks[0])
    assert compute.mostly == "compute"
    assert [step.mostly for step in compute.by_step] == ["compute"] * 5
    loading = critical_path(read_trace(real_traces / "legacy_resnet50_workers0.json.gz").ranks[0])
    assert loading.by_class["data"] > 0.3 * loading.total_ns
