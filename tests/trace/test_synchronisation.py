"""Synchronisation points: what waited, where, how long, and what it cost the device."""

from __future__ import annotations

from typing import Any

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.synchronisation import sync_points
from pyrometer.trace.records.waiting import Synchronisation


def measured(builder: Any) -> Synchronisation:
    synchronisation = sync_points(builder.read())
    assert from_json(Synchronisation, to_json(synchronisation)) == synchronisation
    return synchronisation


def reading_a_loss(builder: Any, at: float, *, line: int = 42) -> None:
    """A kernel of 100 µs, and `loss.item()` that waits for it."""
    builder.launch("gemm", at, at + 10, 100)
    builder.python(f"train.py({line}): log", at + 18, 112)
    builder.op("aten::item", at + 20, 110)
    builder.op("aten::_local_scalar_dense", at + 21, 108)
    copy = builder.call("cudaMemcpyAsync", at + 22, 95)
    builder.device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 111, 2, correlation=copy)
    builder.call("cudaStreamSynchronize", at + 118, 10)


def test_a_scalar_that_is_read_is_one_point_with_its_line(builder: Any) -> None:
    reading_a_loss(builder, 0)
    reading_a_loss(builder, 200)
    (point,) = measured(builder).points
    assert (point.name, point.calls) == ("aten::item", ["cudaMemcpyAsync", "cudaStreamSynchronize"])
    assert (point.num_calls, point.total_ns, point.max_ns) == (2, 210_000, 105_000)
    assert point.stalled_ns == 2 * (88_000 + 2_000)  # beside the kernel from 22 to 110, and the copy
    assert (point.where.file, point.where.line, point.where.op) == ("train.py", 42, "aten::item")
    assert point.waited_for == "Memcpy DtoH (Device -> Pageable)"
    assert point.scope == "copy"


def test_the_idle_time_after_a_wait_is_its_price_on_the_device(builder: Any) -> None:
    reading_a_loss(builder, 0)  # the device drains at 113, within the copy
    reading_a_loss(builder, 200)  # and begins again at 210
    synchronisation = measured(builder)
    assert synchronisation.device_idle_after_ns == 97_000 + 2 * 1_000  # between kernel and copy as well


def test_places_are_kept_apart(builder: Any) -> None:
    reading_a_loss(builder, 0, line=1)
    reading_a_loss(builder, 200, line=2)
    assert sorted(point.where.line or 0 for point in measured(builder).points) == [1, 2]


def test_an_asynchronous_copy_is_no_wait(builder: Any) -> None:
    builder.op("aten::to", 0, 20)
    builder.launch("Memcpy HtoD (Pinned -> Device)", 5, 30, 50, cat="gpu_memcpy")
    builder.op("aten::to", 40, 20)
    builder.launch(
        "Memcpy DtoH (Device -> Pageable)", 45, 90, 50, cat="gpu_memcpy"
    )  # returned before it began
    assert measured(builder).points == []


def test_an_explicit_wait_is_named_by_its_call(builder: Any) -> None:
    builder.launch("gemm", 0, 10, 100)
    builder.python("train.py(9): epoch", 20, 100)
    builder.call("cudaDeviceSynchronize", 30, 85)
    builder.op("aten::mm", 130, 10)
    (point,) = measured(builder).points
    assert (point.name, point.scope, point.where.line) == ("cudaDeviceSynchronize", "device", 9)
    assert (point.total_ns, point.stalled_ns, point.waited_for) == (85_000, 80_000, "gemm")


def test_a_wait_in_backward_is_placed_by_its_forward_operator(builder: Any) -> None:
    builder.python("model.py(5): forward", 0, 50)
    builder.op("aten::index", 5, 20, **{"Sequence number": 7, "Fwd thread id": 0})
    builder.launch("k", 6, 12, 5)
    builder.op("IndexBackward0", 100, 50, tid=200, **{"Sequence number": 7, "Fwd thread id": 1})
    builder.call("cudaStreamSynchronize", 110, 20, tid=200)
    (point,) = measured(builder).points
    assert (point.where.file, point.where.line) == ("model.py", 5)


def test_the_profilers_own_wait_is_left_out_and_counted(builder: Any) -> None:
    builder.op("aten::mm", 0, 20)
    builder.launch("gemm", 5, 30, 100)
    builder.call("cudaDeviceSynchronize", 40, 100)
    synchronisation = measured(builder)
    assert (synchronisation.points, synchronisation.num_profiler_calls) == ([], 1)


def test_a_stream_that_waits_for_another_holds_up_no_host(builder: Any) -> None:
    builder.launch("gemm", 0, 10, 10)
    builder.device(
        "cuda_sync",
        "Stream Wait Event",
        12,
        0,
        stream=9,
        cuda_sync_kind="Stream Wait Event",
        wait_on_stream=7,
    )
    synchronisation = measured(builder)
    assert synchronisation.points == []
    (wait,) = synchronisation.stream_waits
    assert (wait.stream, wait.waits_for_stream, wait.num_waits) == (9, 7, 1)


def test_without_a_device_reads_of_scalars_are_counted_as_what_would_wait(builder: Any) -> None:
    for at in (0, 100):
        builder.python("train.py(42): log", at, 30)
        builder.op("aten::item", at + 5, 10)
        builder.op("aten::_local_scalar_dense", at + 6, 8)
    synchronisation = measured(builder)
    assert synchronisation.would_stall
    (point,) = synchronisation.points
    assert (point.name, point.num_calls, point.where.line) == ("aten::item", 2, 42)
    assert (point.calls, point.scope, point.stalled_ns) == ([], "none", 0)


def test_what_an_optimizer_reads_in_its_update_would_not_wait(builder: Any) -> None:
    builder.python("train.py(42): train", 0, 300)
    builder.annotate("Optimizer.step#AdamW.step", 100, 100)
    for at in (110, 130, 150):
        builder.op("aten::item", at, 10)
    builder.op("aten::item", 250, 10)  # the program's own
    (point,) = measured(builder).points
    assert (point.name, point.num_calls, point.where.line) == ("aten::item", 1, 42)


def test_an_empty_trace_has_no_points(builder: Any) -> None:
    assert measured(builder) == Synchronisation(would_stall=True)
