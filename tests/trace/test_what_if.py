"""What would be won: predictions on traces whose truth is known, and on a program that is really changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrometer.errors import InputError
from pyrometer.trace.analysis.recoverable import largest_gains
from pyrometer.trace.analysis.what_if import parse_change, what_if
from pyrometer.trace.dependencies.select import KINDS
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.gains import Change


def gain_us(trace: Any, change: str) -> float:
    return what_if(trace, change=change).gain_ns / 1000


def test_without_a_change_the_record_comes_back(real_trace: Path) -> None:
    found = what_if(read_trace(real_trace).ranks[0])
    assert (found.gain_ns, found.ratio, found.ratio_low, found.ratio_high, found.touched_ns) == (
        0,
        1,
        1,
        1,
        0,
    )


def test_overlapped_work_brings_nothing(builder: Any) -> None:
    builder.op("aten::first", 0, 10)
    builder.launch("long", 2, 10, 1000, stream=7)
    builder.op("aten::second", 10, 10)
    builder.launch("short", 12, 20, 300, stream=8)
    builder.op("aten::end", 30, 1000)
    builder.call("cudaDeviceSynchronize", 35, 985)
    trace = builder.read()
    assert gain_us(trace, "kernel:short") == 0
    assert gain_us(trace, "kernel:long=2") == 500
    # Then the other stream, which ends at 320, is what the host waits for.
    assert gain_us(trace, "kernel:long") == 1010 - 320
    assert what_if(trace, change=["kernel:long", "kernel:short=2"]).gain_ns == (1010 - 170) * 1000


def launch_bound(builder: Any) -> Any:
    for i in range(50):
        builder.op("aten::add", i * 20, 20)
        builder.launch("tiny", i * 20 + 10, i * 20 + 18, 2)
    return builder.read()


def test_a_launch_bound_run_gains_from_the_host_and_not_from_the_kernels(builder: Any) -> None:
    trace = launch_bound(builder)
    assert gain_us(trace, "kernel=2") == 0
    assert what_if(trace, change="host=2").ratio == pytest.approx(0.5, abs=0.01)
    assert what_if(trace, change="op:add=2").ratio == pytest.approx(0.5, abs=0.01)
    # The calls take 5 µs of every 20.
    assert what_if(trace, change="launch").ratio == pytest.approx(0.75, abs=0.01)


def test_a_queued_run_gains_from_the_kernels_and_not_from_the_host(builder: Any) -> None:
    for i in range(50):
        builder.op("aten::mm", i * 20, 20)
        builder.launch("gemm", i * 20 + 10, 20 + i * 101, 100)
    trace = builder.read()
    assert what_if(trace, change="kernel=2").ratio == pytest.approx(0.5, abs=0.02)
    assert gain_us(trace, "host=2") <= 10
    assert gain_us(trace, "launch") <= 10


def item_per_step(builder: Any, steps: int = 20) -> Any:
    """Each step launches 100 µs of work and reads the result: the host then takes 50 µs until the next launch."""
    at = 0
    for i in range(steps):
        builder.annotate(f"ProfilerStep#{i}", at, 180)
        builder.op("aten::mm", at + 40, 15)
        builder.launch("gemm", at + 45, at + 50, 100)
        builder.op("aten::item", at + 55, 115)
        builder.launch("Memcpy DtoH (Device -> Pageable)", at + 57, at + 151, 2, cat="gpu_memcpy")
        builder.call("cudaStreamSynchronize", at + 63, 97)
        at += 180
    return builder.read()


def test_reading_a_result_in_every_step_stalls_the_run(builder: Any) -> None:
    trace = item_per_step(builder)
    found = what_if(trace, change="sync")
    # What remains is the device: 100 µs of work, a copy and two gaps in each of 20 steps.
    assert 20 * 102 <= found.new_span_ns / 1000 <= 20 * 108
    assert 0.55 < found.ratio < 0.65
    first = largest_gains(trace)[0]
    assert first.kind in ("sync", "kernel", "op")
    sync = next(gain for gain in largest_gains(trace) if gain.kind == "sync")
    assert sync.name == "cudaStreamSynchronize in aten::item"
    assert sync.gain_ns == found.gain_ns
    assert sync.where.op == "aten::item"


def test_a_copy_brings_what_is_exposed_of_it(builder: Any) -> None:
    builder.op("aten::to", 0, 10)
    builder.launch("Memcpy HtoD (Pinned -> Device)", 2, 10, 400, cat="gpu_memcpy", stream=7)
    builder.op("aten::mm", 10, 10)
    builder.launch("gemm", 12, 411, 600, stream=7)
    builder.op("aten::to", 20, 10)
    builder.launch("Memcpy HtoD (Pinned -> Device) next", 22, 30, 400, cat="gpu_memcpy", stream=20)
    trace = builder.read()
    assert gain_us(trace, "copy:next") == 0
    assert 390 <= gain_us(trace, "copy:Device\\)$") <= 400


def test_data_that_is_ready_at_once_saves_exactly_its_time(builder: Any) -> None:
    for i in range(5):
        builder.annotate(f"ProfilerStep#{i}", i * 1000, 1000)
        builder.op("aten::mm", i * 1000, 300)
        builder.annotate("enumerate(DataLoader)#_Iter.__next__", i * 1000 + 300, 600)
        builder.op("aten::stack", i * 1000 + 400, 200)
        builder.op("aten::relu", i * 1000 + 900, 100)
    trace = builder.read()
    found = what_if(trace, change="data")
    assert (found.span_ns, found.new_span_ns) == (5000_000, 2000_000)
    assert found.touched_ns == 3000_000
    best = largest_gains(trace)[0]
    assert (best.kind, best.gain_ns, best.ratio) == ("data", 3000_000, 0.4)


def test_a_wait_for_the_loader_is_no_unrecorded_time(builder: Any) -> None:
    builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 300)
    builder.op("aten::a", 320, 100)
    builder.annotate("between", 430, 50)
    builder.op("aten::b", 490, 100)
    trace = builder.read()
    assert gain_us(trace, "gap") == 20 + 70
    assert gain_us(trace, "data") == 300


def test_a_faster_backward_thread_lets_the_main_thread_go_on_earlier(builder: Any) -> None:
    builder.op("aten::linear", 0, 100, **{"Sequence number": 1, "Fwd thread id": 0})
    builder.op("AddmmBackward0", 200, 400, tid=7, **{"Sequence number": 1, "Fwd thread id": 1})
    builder.op("aten::optimizer", 700, 50)
    trace = builder.read()
    assert gain_us(trace, "op:Backward=2") == 200
    # The main thread's own 100 µs before and after the backward pass are gaps; the waiting is none.
    assert gain_us(trace, "gap") == 200


def test_an_awaited_event_moves_with_its_stream(builder: Any) -> None:
    builder.op("aten::a", 0, 60)
    builder.launch("first", 2, 10, 500, stream=7)
    builder.call("cudaStreamWaitEvent", 16, 2)
    builder.launch("second", 20, 511, 100, stream=8)
    assert gain_us(builder.read(), "kernel:first=2") == 250


def test_delays_without_a_cause_widen_the_interval(builder: Any) -> None:
    builder.op("aten::a", 0, 10)
    builder.launch("first", 2, 10, 500)
    builder.op("aten::b", 20, 10)
    builder.launch("late", 22, 1510, 500)  # the stream was empty for 1 ms, and nothing tells why
    found = what_if(builder.read(), change="kernel:late=2")
    assert found.gain_ns == 250_000
    assert found.ratio_high == found.ratio == pytest.approx(1 - 250 / 2010)
    assert found.ratio_low == pytest.approx(1 - 250 / 1010, abs=0.01)


def test_lines_and_modules_take_their_backward_with_them(builder: Any) -> None:
    builder.python("model.py(7): forward", 0, 100)
    builder.python("nn.Module: Linear_0", 5, 90)
    builder.op("aten::linear", 10, 80, **{"Sequence number": 3, "Fwd thread id": 0})
    builder.op("AddmmBackward0", 200, 60, **{"Sequence number": 3, "Fwd thread id": 1})
    trace = builder.read()
    # The span runs from 10, where the operator begins, to 260.
    assert what_if(trace, change=Change(kind="line", name="model.py:7")).gain_ns == 90_000 + 60_000
    assert what_if(trace, change=Change(kind="module", pattern="Linear")).gain_ns == 85_000 + 60_000
    assert gain_us(trace, "op:aten::linear") == 80
    assert gain_us(trace, "python:forward") == 5


def test_gains_are_not_counted_twice(builder: Any) -> None:
    for i in range(20):
        builder.op("aten::conv", i * 100, 40)
        builder.call("cudaMalloc", i * 100 + 10, 20)
        builder.op("aten::relu", i * 100 + 50, 50)
    trace = builder.read()
    recoverables = largest_gains(trace)
    assert [recoverable.gain_ns for recoverable in recoverables] == sorted(
        (recoverable.gain_ns for recoverable in recoverables), reverse=True
    )
    assert sum(recoverable.added_ns for recoverable in recoverables) <= trace.activity.span_ns
    assert {recoverable.name for recoverable in recoverables} >= {"aten::relu", "cudaMalloc"}
    assert all(recoverable.gain_ns <= recoverable.critical_ns for recoverable in recoverables)
    assert len(largest_gains(trace, top=1)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_change_is_possible_on_every_trace(builder: Any, kind: str) -> None:
    assert what_if(builder.read(), change=kind).gain_ns == 0
    builder.op("c10d::allreduce_", 0, 10)
    builder.device("kernel", "orphan", 3, 20)
    assert what_if(builder.read("more.json"), change=kind).gain_ns >= 0


@pytest.mark.parametrize("change", ["kernels", "kernel:(", "kernel=0", "kernel=-2", "gap:name"])
def test_changes_that_mean_nothing_are_refused(builder: Any, change: str) -> None:
    with pytest.raises(InputError):
        what_if(builder.read(), change=change)


def test_changes_can_be_written_as_text() -> None:
    assert parse_change("op:aten::mm") == Change(kind="op", pattern="aten::mm")
    assert parse_change("call:cudaMalloc=4") == Change(kind="call", pattern="cudaMalloc", speedup=4.0)
    assert parse_change("host=1.5") == Change(kind="host", speedup=1.5)
    assert parse_change("kernel:a=b") == Change(kind="kernel", pattern="a=b")


def test_a_compute_bound_run_gains_from_its_kernels(real_traces: Path) -> None:
    trace = read_trace(real_traces / "v100_ns_5steps.json.gz").ranks[0]
    assert 0.45 < 1 - what_if(trace, change="kernel=2").ratio < 0.5
    assert 1 - what_if(trace, change="host=2").ratio < 0.01


def test_gains_of_real_traces_are_within_their_bounds(real_trace: Path) -> None:
    trace = read_trace(real_trace).ranks[0]
    span = trace.activity.span_ns
    for gain in largest_gains(trace):
        assert 0 < gain.gain_ns <= span
        assert gain.ratio_low <= gain.ratio <= gain.ratio_high <= 1
        if gain.kind != "sync":
            assert gain.gain_ns <= gain.critical_ns + 0.001 * span


@pytest.mark.measuring
@pytest.mark.slow
def test_a_prediction_comes_true(tmp_path: Path) -> None:
    """Half of the multiplications are predicted from a record with all of them, and then really left out."""
    import torch

    x = torch.randn(400, 400)

    def record(repeats: int, name: str) -> Any:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            for _ in range(5):
                for _ in range(repeats):
                    torch.mm(x, x)
                torch.sort(x[:100].flatten())
        path = tmp_path / f"{name}.json"
        profile.export_chrome_trace(str(path))
        return read_trace(path).ranks[0]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        record(2, "warm")
        # Taken in turns, and of each the least disturbed.
        pairs = [(record(8, f"full{i}"), record(4, f"half{i}")) for i in range(12)]
    finally:
        torch.set_num_threads(threads)
    full, half = (
        min(traces, key=lambda trace: trace.activity.span_ns) for traces in zip(*pairs, strict=True)
    )
    predicted = what_if(full, change="op:aten::mm=2")
    assert predicted.ratio < 0.8
    assert predicted.ratio == pytest.approx(half.activity.span_ns / full.activity.span_ns, abs=0.2)
