"""A synthetic job of many ranks whose waiting, clocks and bubbles are known to the nanosecond."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

COMPUTE_US = 300
MOVE_US = 100
OVERLAP_US = 30
ELEMENTS = 1_000_000


@dataclass
class SyntheticJob:
    """Data-parallel steps: compute, then one all-reduce that starts when a rank is ready and ends for all together.

    Ranks in `slow_us` compute that much longer per step, those in `loading_us` wait that much longer for data, and
    clocks are ahead by `clock_us`. Each step lasts 2 ms of true time.
    """

    folder: Path
    builder: Any
    num_ranks: int = 4
    num_steps: int = 5
    slow_us: dict[int, float] = field(default_factory=dict)
    loading_us: dict[int, float] = field(default_factory=dict)
    clock_us: dict[int, float] = field(default_factory=dict)
    numbered: bool = True
    skip: set[tuple[int, int]] = field(default_factory=set)  # (rank, step) without its all-reduce
    elements: dict[tuple[int, int], int] = field(default_factory=dict)  # by (rank, step)
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    first_step: dict[int, int] = field(default_factory=dict)  # ranks that begin to record later

    def write(self) -> list[Path]:
        """One file per rank."""
        return [self._write(rank) for rank in range(self.num_ranks)]

    def arguments(self, rank: int, step: int) -> dict[str, Any]:
        """Of the all-reduce, as Kineto spells them."""
        count = self.elements.get((rank, step), ELEMENTS)
        numbered = {"Seq": step + 1} if self.numbered else {}
        return {
            "Collective name": self.names.get((rank, step), "allreduce"),
            "dtype": "Float",
            "In msg nelems": count,
            "Out msg nelems": count,
            "Group size": self.num_ranks,
            "Process Group Name": "0",
            "Process Group Ranks": str(list(range(self.num_ranks))),
            **numbered,
        }

    def _write(self, rank: int) -> Path:
        info = {"backend": "nccl", "rank": rank, "world_size": self.num_ranks}
        builder = self.builder(self.folder, distributedInfo=info)
        for step in range(self.first_step.get(rank, 0), self.num_steps):
            self._step(builder, rank, step)
        path: Path = builder.write(f"rank{rank}.json")
        return path

    def _late(self, rank: int) -> float:
        return self.slow_us.get(rank, 0) + self.loading_us.get(rank, 0)

    def _step(self, one: Any, rank: int, step: int) -> None:
        clock = 1000 + step * 2000 + self.clock_us.get(rank, 0)
        one.annotate(f"ProfilerStep#{step}", clock, 1900)
        loading = self.loading_us.get(rank, 0)
        one.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", clock + 5, 5 + loading)
        host = clock + 20 + loading
        one.op("aten::mm", host, 20)
        compute = COMPUTE_US + self.slow_us.get(rank, 0)
        one.launch("gemm", host + 5, host + 30, compute)
        begins = host + 30 + compute
        last = 1000 + step * 2000 + 50 + COMPUTE_US + max(map(self._late, range(self.num_ranks)))
        ends = last + MOVE_US + self.clock_us.get(rank, 0)
        if (rank, step) not in self.skip:
            args = self.arguments(rank, step)
            one.op("c10d::allreduce_", host + 40, 20)
            one.op("record_param_comms", host + 42, 16, **args)
            one.annotate("nccl:all_reduce", host + 44, 12)
            one.launch(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL", host + 46, begins, ends - begins, stream=20, **args
            )
        one.op("aten::add", host + 70, 20)
        one.launch("add", host + 75, begins, OVERLAP_US)


@pytest.fixture
def synthetic_job(tmp_path: Path, new_builder: Any) -> Any:
    """Builds a `SyntheticJob` from its options."""
    return lambda **options: SyntheticJob(tmp_path, new_builder, **options)
