"""What bounds a simulated run, against the simulation itself with each resource free or twice as fast."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest

from pyrometer.trace.analysis.bounds import WORK, bounds
from pyrometer.trace.records.gains import HELPS

RESOURCES = ("compute", "copies", "host", "data", "synchronisation")
CLEAR = 0.03
"""Of the span: two resources nearer to each other than this may be told either way."""


class Program(NamedTuple):
    """One host thread and one stream, µs: times per step and operator."""

    host: list[list[float]]
    kernels: list[list[float]]
    gap: float
    data: float
    copy: float
    syncs: bool


def any_program(seed: int) -> Program:
    draw = random.Random(seed)
    ops, steps = range(draw.randint(8, 20)), range(3)
    kernel, host = draw.choice([5, 20, 60, 150]), draw.choice([10, 30, 60])
    return Program(
        host=[[host * draw.uniform(0.7, 1.4) for _ in ops] for _ in steps],
        kernels=[[kernel * draw.lognormvariate(0, 0.6) for _ in ops] for _ in steps],
        gap=draw.choice([0.0, 2, 10]),
        data=draw.choice([0, 0, 300, 1000]),
        copy=draw.choice([0, 0, 100, 1500]),
        syncs=draw.random() < 0.4,
    )


def run(program: Program, keep: dict[str, float], builder: Any = None) -> float:
    """Length of the run when each resource keeps this share of its time; its events go to the builder."""
    now = device = 0.0
    host, delay = keep["host"], 6.0 * (keep["host"] > 0)
    for step, (times, kernels) in enumerate(zip(program.host, program.kernels, strict=True)):
        begin = now
        if program.data:
            if builder:
                builder.annotate(
                    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", now, program.data
                )
            now += program.data * keep["data"]
        work = [(program.copy, "gpu_memcpy", 8.0)] if program.copy else []
        work += [(kernel, "kernel", time) for kernel, time in zip(kernels, times, strict=True)]
        for duration, kind, time in work:
            call = now + time * host / 2
            start = max(device + 1, call + delay)
            device = start + duration * keep["compute" if kind == "kernel" else "copies"]
            if builder:
                builder.op("aten::linear", now, time)
                name = "gemm" if kind == "kernel" else "Memcpy HtoD (Pinned -> Device)"
                builder.launch(name, call, start, duration, cat=kind, call_us=time * 0.4)
            now += (time + program.gap) * host
        if program.syncs and keep["synchronisation"]:
            done = max(now + 3, device + 2)
            if builder:
                builder.call("cudaStreamSynchronize", now, done - now)
            now = done
        if builder:
            builder.annotate(f"ProfilerStep#{step}", begin, now - begin)
    return max(now, device)


@pytest.mark.parametrize("seed", range(16))
def test_the_bound_is_what_helps_the_simulated_run(builder: Any, seed: int) -> None:
    program = any_program(seed)
    whole = dict.fromkeys(RESOURCES, 1.0)
    span = run(program, whole, builder)
    free = {name: run(program, {**whole, name: 0.0}) / span for name in RESOURCES}
    changed = {
        name: run(program, {**whole, name: 0.5}) / span if name in WORK else free[name] for name in RESOURCES
    }
    found = bounds(builder.read())
    assert {tried.resource: tried.free_ratio for tried in found.resources if tried.resource in free} == (
        pytest.approx(free, abs=CLEAR)
    )
    able = {name: changed[name] for name in RESOURCES if free[name] * HELPS <= 1}
    likely = [name for name in able if able[name] <= min(able.values()) + CLEAR]
    if all(abs(free[name] - 1 / HELPS) > CLEAR for name in RESOURCES):
        assert found.bound in (likely or ["balanced"])
