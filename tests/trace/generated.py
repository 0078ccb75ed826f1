"""Random traces, as text: nesting and overlaps, streams, graphs, orphans, zero durations, decimals, absent arguments."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

HOST = {
    "cpu_op": ["aten::mm", "aten::add", "aten::item", "c10d::allreduce_", "_c10d_functional::wait_tensor"],
    "user_annotation": ["gloo:all_reduce", "phase:data", "forward", "enumerate(DataLoader)#_Iter.__next__"],
    "python_function": ["train.py(3): main", "torch/utils/data/dataloader.py(10): __next__", "Python GC"],
    "cuda_runtime": [
        "cudaLaunchKernel",
        "cudaStreamSynchronize",
        "cudaMalloc",
        "cudaMemcpyAsync",
        "cudaFree",
    ],
    "cuda_driver": ["cuLaunchKernel"],
    "overhead": ["Buffer Flush", "Lazy Function Loading"],
}
DEVICE = {
    "kernel": ["gemm", "ncclDevKernel_AllReduce_Sum_f32"],
    "gpu_memcpy": ["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoD"],
    "gpu_memset": ["Memset (Device)"],
    "gpu_user_annotation": ["forward"],
    "cuda_sync": ["Stream Wait Event"],
}
BASES = (0, 4458676426946_603, 1669783687464181_000)
"""Where the clock of the file stands, ns: at its start, three months on, and at unix time in microseconds."""


def _microseconds(ns: int) -> str:
    """As Kineto writes it: whole, or with three decimals."""
    return str(ns // 1000) if ns % 1000 == 0 else f"{ns // 1000}.{ns % 1000:03d}"


def _event(fields: dict[str, Any], start: int, dur: int) -> str:
    text = json.dumps({"ph": "X", **fields})
    return f'{text[:-1]}, "ts": {_microseconds(start)}, "dur": {_microseconds(dur)}}}'


@st.composite
def events(
    draw: st.DrawFn, *, kinds: dict[str, list[str]], on_device: bool
) -> tuple[dict[str, Any], int, int]:
    """One event: its fields, start and duration in ns."""
    category = draw(st.sampled_from(sorted(kinds)))
    fields: dict[str, Any] = {"cat": category, "name": draw(st.sampled_from(kinds[category]))}
    args: dict[str, Any] = {}
    if draw(st.integers(0, 3)):
        args["correlation"] = draw(st.integers(0, 5))
    if on_device:
        fields |= {"pid": draw(st.integers(0, 1)), "tid": draw(st.sampled_from([7, 20]))}
        args |= {
            "device": fields["pid"],
            "stream": fields["tid"],
            "bytes": draw(st.sampled_from([1, 1 << 20])),
        }
    else:
        fields |= {"pid": 1, "tid": draw(st.integers(1, 3))}
    start = draw(st.integers(0, 60)) * draw(st.sampled_from([1, 100, 997]))
    dur = draw(st.integers(0, 40)) * draw(st.sampled_from([0, 1, 100, 2003]))
    return {**fields, "args": args}, start, dur


@st.composite
def traces(draw: st.DrawFn) -> str:
    """A whole file."""
    base = draw(st.sampled_from(BASES))
    found = draw(st.lists(events(kinds=HOST, on_device=False), max_size=25))
    if draw(st.booleans()):
        found += draw(st.lists(events(kinds=DEVICE, on_device=True), max_size=25))
    edges = sorted(draw(st.sets(st.integers(0, 60_000), max_size=4)))
    for number, (low, high) in enumerate(pairwise(edges)):
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1}
        found.append((mark, low, high - low))
    lines = ",\n".join(
        _event(fields, base + start, dur) for fields, start, dur in draw(st.permutations(found))
    )
    head = "" if base > BASES[1] else '"baseTimeNanoseconds": 1751410836000000000, '
    return f'{{{head}"traceEvents": [\n{lines}\n]}}'
