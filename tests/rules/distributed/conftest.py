"""Jobs of many ranks with a known truth, and DistributedDataParallel in a group of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrometer.rules.case import Case
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.reporting.job_report import report_files


def job_evidence(paths: list[Path], rank: int = 0, **more: Any) -> Case:
    """What all ranks' traces say, seen from one of them."""
    report = report_files(paths, executor=SerialExecutor())
    return Case(target="test", ranks=tuple(report.ranks), trace=report.ranks[rank], job=report.job, **more)


@pytest.fixture(scope="session")
def jobs(load: Callable[[str], ModuleType]) -> ModuleType:
    """The synthetic jobs of the tests of traces: `jobs.SyntheticJob(folder, builder, slow_us={1: 100})`."""
    return load("tests/trace/jobs/conftest.py")


@pytest.fixture(scope="session")
def synthetic(
    jobs: ModuleType, trace_tests: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Case]:
    """`synthetic(slow_us={2: 500}, rank=0)`: evidence of a synthetic job, read once for all who ask for the same."""
    made: dict[str, Case] = {}

    def make(*, rank: int = 0, **options: Any) -> Case:
        which = f"{rank} {options}"
        if which not in made:
            job = jobs.SyntheticJob(tmp_path_factory.mktemp("job"), trace_tests.TraceBuilder, **options)
            made[which] = job_evidence(job.write(), rank)
        return made[which]

    return make


@pytest.fixture(scope="session")
def example_jobs(
    load: Callable[[str], ModuleType], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Case]:
    """The example's job, `late` with its straggler and `fixed` without."""
    example = load("examples/job_traces.py")
    found = {}
    for name in ("late", "fixed"):
        folder = tmp_path_factory.mktemp(name)
        paths = [rank.write(folder) for rank in example.simulate(fixed=name == "fixed")]
        found[name] = job_evidence(paths)
    return found


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    """A process group of this process alone."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def collective() -> Callable[..., dict[str, Any]]:
    """Arguments of a collective as Kineto spells them: `collective("allreduce", elements, seq)`."""

    def arguments(name: str, elements: int, number: int, size: int = 4) -> dict[str, Any]:
        return {
            "Collective name": name,
            "dtype": "Float",
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "Group size": size,
            "Process Group Name": "0",
            "Process Group Ranks": str(list(range(size))),
            "Seq": number,
        }

    return arguments


@pytest.fixture
def reducing(builder: Any, collective: Any) -> Callable[..., Case]:
    """`reducing(calls=20, elements=1000, each_us=20)`: one rank whose steps compute, then reduce in the open.

    Without `elements` the trace says no sizes; `between_us` passes before each call, which the host issues only then.
    """

    def make(
        *,
        calls: int,
        elements: int | None,
        each_us: float,
        between_us: float = 0,
        compute_us: float = 1000,
        backward: bool = True,
        steps: int = 2,
        **more: Any,
    ) -> Case:
        from pyrometer.trace.reporting.rank_report import report_rank

        clock, number = 1000.0, 0
        for step in range(steps):
            began = clock
            if backward:
                builder.op("autograd::engine::evaluate_function: MmBackward0", clock, 25)
            builder.op("aten::mm", clock, 20)
            builder.launch("gemm", clock + 5, clock + 30, compute_us)
            clock += 30 + compute_us
            for _ in range(calls):
                number += 1
                clock += between_us
                args = {} if elements is None else collective("allreduce", elements, number)
                builder.op("record_param_comms", clock - 15, 10, **args)
                builder.launch(
                    "ncclDevKernel_AllReduce_Sum_f32_RING_LL", clock - 14, clock, each_us, stream=20, **args
                )
                clock += each_us
            builder.annotate(f"ProfilerStep#{step}", began, clock - began + 10)
            clock += 20
        return Case(target="test", trace=report_rank(builder.read()), **more)

    return make
