"""What waiting for other streams costs in simulated training with sharded weights, against the simulation with communication free."""

from __future__ import annotations

import random
from typing import Any, Literal, NamedTuple

import pytest
from representative import every

from pyrometer.trace.analysis.bounds import bounds
from pyrometer.trace.records.gains import HELPS

COMPUTE = 7
CLOSE = 0.05
"""Of the span: which event was meant is inferred where no record tells it."""

Told = Literal["records", "calls", "nothing"]
"""How the waits stand in the trace: with their events, as calls alone, or not at all."""


class Program(NamedTuple):
    """Layers whose weights are gathered before them, and gradients scattered after them; µs."""

    layers: int
    kernels: int
    kernel_us: float
    gather_us: float
    scatter_us: float
    ahead: int
    """How many layers before its own each gathering is given to its stream."""
    streams: tuple[int, int]
    """Of gathering and of scattering."""
    seed: int


class Run:
    """One host thread that runs ahead of streams which wait for each other; its events go to the builder."""

    def __init__(self, builder: Any, told: Told, communication: float) -> None:
        self.builder, self.told, self.communication = builder, told, communication
        self.now = 0.0
        self.free: dict[int, float] = {}
        self.waits: dict[int, float] = {}

    def wait(self, stream: int, other: int) -> None:
        """Let a stream wait for what another was given so far."""
        at, recorded = self.now, 0
        self.now += 3
        if self.builder and self.told != "nothing":
            recorded = self.builder.call("cudaEventRecord", at, 1)
            waiting = self.builder.call("cudaStreamWaitEvent", at + 1.5, 1)
            if self.told == "records":
                self.builder.add(
                    "cuda_sync", "Stream Wait Event", at + 1.5, 0, pid=0, tid=stream, cuda_sync_kind="Stream Wait Event",
                    stream=stream, device=0, correlation=waiting, wait_on_stream=other,
                    wait_on_cuda_event_record_corr_id=recorded, wait_on_cuda_event_id=1,
                )  # fmt: skip
        self.waits[stream] = max(self.waits.get(stream, 0.0), self.free.get(other, 0.0) + 1.4)

    def give(self, name: str, stream: int, took: float) -> None:
        """Launch work onto a stream."""
        at = self.now
        self.now += 12
        start = max(at + 8, self.free.get(stream, 0.0) + 1, self.waits.pop(stream, 0.0))
        self.free[stream] = start + took * (self.communication if name.startswith("nccl") else 1.0)
        if self.builder:
            self.builder.op("aten::mm", at, 11)
            self.builder.launch(name, at + 2, start, took, stream=stream)

    def synchronise(self) -> None:
        """The host waits for all streams."""
        done = max(self.now + 3, *(end + 2 for end in self.free.values()))
        if self.builder:
            self.builder.call("cudaDeviceSynchronize", self.now, done - self.now)
        self.now = done


def run(program: Program, told: Told, communication: float = 1.0, builder: Any = None) -> float:
    """Length of the run when communication keeps this share of its time."""
    draw = random.Random(program.seed)
    going = Run(builder, told, communication)
    gather, scatter = program.streams
    for _ in range(3):
        begin, given = going.now, 0
        for layer in range(program.layers):
            while given <= min(layer + program.ahead, program.layers - 1):
                if not program.ahead:
                    going.wait(gather, COMPUTE)
                going.give(
                    "ncclDevKernel_AllGather_RING_LL", gather, program.gather_us * draw.uniform(0.9, 1.1)
                )
                given += 1
            going.wait(COMPUTE, gather)
            for _ in range(program.kernels):
                going.give("gemm", COMPUTE, program.kernel_us * draw.uniform(0.7, 1.3))
            if program.scatter_us:
                going.wait(scatter, COMPUTE)
                going.give(
                    "ncclDevKernel_ReduceScatter_Sum_RING_LL",
                    scatter,
                    program.scatter_us * draw.uniform(0.9, 1.1),
                )
        going.wait(COMPUTE, scatter)
        going.give("adam", COMPUTE, 200)
        going.synchronise()
        if builder:
            builder.annotate("ProfilerStep#0", begin, going.now - begin)
    return going.now


PROGRAMS = {
    "gathered before each layer": Program(12, 2, 380, 900, 0, 0, (20, 20), 1),
    "one kernel per layer": Program(30, 1, 500, 400, 0, 0, (20, 20), 2),
    "gathered and scattered on one stream": Program(16, 3, 150, 500, 300, 0, (20, 20), 3),
    "on two streams": Program(9, 4, 120, 600, 900, 0, (20, 21), 4),
    "gathered one layer ahead": Program(14, 2, 300, 450, 0, 1, (20, 21), 5),
    "hidden": Program(20, 3, 400, 500, 200, 1, (20, 21), 6),
}


@pytest.mark.parametrize("told", ["records", "calls", "nothing"])
@pytest.mark.parametrize("name", every(2, PROGRAMS))
def test_communication_is_worth_what_the_run_without_it_is_shorter(
    builder: Any, name: str, told: Told
) -> None:
    program = PROGRAMS[name]
    span = run(program, told, builder=builder)
    free = run(program, told, 0.0) / span
    found = bounds(builder.read())
    tried = next(tried for tried in found.resources if tried.resource == "communication")
    assert tried.free_ratio == pytest.approx(free, abs=CLOSE)
    assert found.bound == ("communication" if free * HELPS <= 1 else "compute")
