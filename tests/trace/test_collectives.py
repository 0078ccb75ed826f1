"""Collectives of one rank: what they move, how long they run, what hides them, and who called them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.analysis.collectives import collectives
from pyrometer.trace.jobs.calls import collective_calls
from pyrometer.trace.jobs.semantics import bus_factor, canonical
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.device import Collectives

ARGS = {
    "Collective name": "allreduce",
    "dtype": "BFloat16",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "Group size": 4,
    "Process Group Name": "7",
    "Process Group Description": "dp",
    "Process Group Ranks": "[0, 1, 2, 3]",
    "Seq": 12,
    "Is asynchronized op": True,
}


def call(
    builder: Any, at: float, start: float, dur: float, *, kernel: dict[str, Any], host: dict[str, Any]
) -> None:
    """One all-reduce, from the operator down to the kernel."""
    builder.op("c10d::allreduce_", at, 30)
    builder.op("record_param_comms", at + 2, 26, **host)
    builder.annotate("nccl:all_reduce", at + 4, 22)
    builder.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at + 6, start, dur, stream=20, **kernel)


@pytest.mark.parametrize("told_by", ["kernel", "host"])
def test_sizes_and_bandwidth_whichever_event_tells_them(builder: Any, told_by: str) -> None:
    builder.python("train.py(12): step", 0, 100)
    call(
        builder,
        10,
        50,
        20,
        kernel=ARGS if told_by == "kernel" else {},
        host=ARGS if told_by == "host" else {},
    )
    found = collectives(builder.read())
    (group,) = found.groups
    assert (group.name, group.group, group.group_size, group.dtype, group.num_calls) == (
        "all_reduce",
        "7",
        4,
        "bfloat16",
        1,
    )
    assert (group.bytes, group.in_bytes, group.out_bytes, group.num_async) == (2000, 2000, 2000, 1)
    assert (group.total_ns, group.mean_ns, group.exposed_ns) == (20_000, 20_000, 20_000)
    assert group.algorithm_bandwidth == pytest.approx(2000 / 20e-6)
    assert group.bus_bandwidth == pytest.approx(2000 / 20e-6 * 1.5)
    assert (group.op, group.where.file, group.where.line) == ("c10d::allreduce_", "train.py", 12)


def test_exposed_and_overlapped_are_measured_against_the_same_device(builder: Any) -> None:
    call(builder, 0, 100, 40, kernel=ARGS, host=ARGS)
    builder.device("kernel", "gemm", 90, 25)  # hides 15
    builder.device("kernel", "gemm", 110, 10, stream=8)  # hides 5 more
    builder.device("kernel", "gemm", 120, 20, device=1)  # another device hides nothing
    found = collectives(builder.read())
    assert (found.communication_ns, found.exposed_ns, found.overlapped_ns) == (40_000, 20_000, 20_000)
    assert (found.groups[0].exposed_ns, found.groups[0].overlapped_ns) == (20_000, 20_000)


def test_kernels_of_one_call_are_one_call(builder: Any) -> None:
    builder.op("c10d::allreduce_", 0, 30)
    builder.op("record_param_comms", 2, 26, **ARGS)
    builder.launch("ncclDevKernel_AllReduce", 5, 40, 10, stream=20)
    builder.launch("ncclDevKernel_AllReduce", 15, 55, 10, stream=20)
    (row,) = collective_calls(builder.read()).iter_rows(named=True)
    assert (row["num_kernels"], row["start_ns"], row["end_ns"]) == (2, 40_000, 65_000)


def test_kernels_without_a_launch_are_calls_of_their_own(builder: Any) -> None:
    builder.device("kernel", "void cross_device_reduce_1stage<float>", 0, 5)
    builder.device("kernel", "ncclDevKernel_AllGather_RING_LL", 10, 5)
    builder.device("kernel", "gemm_reduce", 20, 5)
    calls = collective_calls(builder.read())
    assert calls["name"].to_list() == ["all_reduce", "all_gather"]
    assert calls["launch"].to_list() == [None, None]


def test_a_call_without_its_kernel_is_counted_and_not_timed(builder: Any) -> None:
    call(builder, 0, 100, 40, kernel=ARGS, host=ARGS)
    builder.op("c10d::allreduce_", 200, 30)
    builder.op("record_param_comms", 202, 26, **ARGS)
    (group,) = collectives(builder.read()).groups
    assert (group.num_calls, group.num_timed, group.bytes, group.total_ns) == (2, 1, 4000, 40_000)
    assert group.algorithm_bandwidth == pytest.approx(2000 / 40e-6)


def test_waits_and_other_bookkeeping_are_no_collectives(builder: Any) -> None:
    builder.op("record_param_comms", 0, 5, **{**ARGS, "Collective name": "wait"})
    builder.op("_c10d_functional::wait_tensor", 10, 5)
    assert collectives(builder.read()) == Collectives()


def test_gloo_runs_on_a_worker_thread_and_is_paired_with_its_operator(builder: Any) -> None:
    ops = {
        "Input Dims": [[[1000]], [], [], [], [], []],
        "Input type": ["TensorList", "", "", "", "Scalar", "Scalar"],
    }
    shape = {"Input Dims": [[1000]], "Input type": ["float"]}
    builder.add("user_annotation", "gloo:all_reduce", 2, 3, tid=101, **shape)  # queued before the recording
    for i in range(3):
        asynchronous = ["", "", "", "", "True", "-1"]
        builder.op("c10d::allreduce_", 10 + 100 * i, 5, **ops, **{"Concrete Inputs": asynchronous})
        builder.op("aten::mm", 30 + 100 * i, 20)
        builder.add("user_annotation", "gloo:all_reduce", 20 + 100 * i, 50, tid=101, **shape)
    trace = builder.read()
    calls = collective_calls(trace)
    assert calls["launch_ns"].to_list() == [None, 10_000, 110_000, 210_000]
    assert calls["is_async"].to_list() == [None, True, True, True]
    (group,) = collectives(trace).groups
    assert (group.name, group.bytes, group.num_timed) == ("all_reduce", 4 * 4000, 4)
    assert (group.exposed_ns, group.overlapped_ns) == (3_000 + 3 * 30_000, 3 * 20_000)


def test_the_reduce_scatter_that_gloo_builds_from_all_reduces_is_their_operator(builder: Any) -> None:
    builder.head["distributedInfo"] = {"backend": "gloo", "rank": 0, "world_size": 2}
    builder.op("c10d::reduce_scatter_", 0, 5)
    builder.op("c10d::allreduce_", 10, 5)
    for at in (2, 4, 12):
        builder.annotate("gloo:all_reduce", at, 20, tid=100 + at)
    trace = builder.read()
    launches = collective_calls(trace)["launch"].to_list()
    assert [trace.events["name"][row] for row in launches] == ["c10d::reduce_scatter_"] * 2 + [
        "c10d::allreduce_"
    ]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("_reduce_scatter_base", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("alltoall_base", "all_to_all"),
        ("nccl:all_reduce_barrier", "barrier"),
        ("c10d::recv_any_source_", "recv"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "send_recv"),
        ("multimem_all_reduce_kernel<c10::BFloat16>", "all_reduce"),
        ("_reduce_oop", "reduce"),
    ],
)
def test_names_of_collectives(name: str, meaning: str) -> None:
    assert canonical(name) == meaning


def test_bus_factors_are_those_of_nccl_tests() -> None:
    assert [
        bus_factor(name, 8) for name in ("all_reduce", "reduce_scatter", "all_to_all", "reduce", "send")
    ] == [
        1.75,
        0.875,
        0.875,
        1.0,
        1.0,
    ]


def test_an_empty_trace_has_none(builder: Any) -> None:
    assert collectives(builder.read()) == Collectives()


def test_exposed_communication_agrees_with_the_breakdown_on_real_traces(real_traces: Path) -> None:
    for path in sorted(real_traces.glob("*.json.gz")):
        if path.stat().st_size > 800_000:
            continue
        trace = read_trace(path).ranks[0]
        found = collectives(trace)
        assert from_json(Collectives, to_json(found)) == found
        for group in found.groups:
            assert 0 <= group.exposed_ns <= group.total_ns
        if trace.activity.has_device:
            parts = breakdown(trace)
            assert found.exposed_ns == parts.parts.exposed_comm, path.name
            assert found.communication_ns == parts.communication_ns, path.name
