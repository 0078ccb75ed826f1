"""Bubbles of pipelines against what the schedule must cost, and how well FSDP hides its gathering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrometer.trace.jobs.merge import read_job

UNIT_US = 100


def message(name: str, peer: int, stages: int) -> dict[str, Any]:
    side = "Dst Rank" if name == "send" else "Src Rank"
    return {
        "Collective name": name,
        "dtype": "Float",
        "In msg nelems": 1000,
        "Out msg nelems": 1000,
        "Group size": stages,
        "Process Group Name": "0",
        "Process Group Ranks": str(list(range(stages))),
        side: peer,
    }


def gpipe(folder: Path, builder: Any, stages: int, batches: int, steps: int) -> list[Path]:
    """All forwards, then all backwards; each takes one unit on each stage, and messages take none of it."""
    paths = []
    length = 2 * (batches + stages - 1) * UNIT_US + 200
    for rank in range(stages):
        one = builder(folder, distributedInfo={"rank": rank, "world_size": stages})
        for step in range(steps):
            clock = 1000 + step * length
            one.annotate(f"ProfilerStep#{step}", clock, length - 10)
            half = clock + 50 + (batches + stages - 1) * UNIT_US
            for batch in range(batches):
                for forward, at in (
                    (True, clock + 50 + (rank + batch) * UNIT_US),
                    (False, half + (stages - 1 - rank + batch) * UNIT_US),
                ):
                    one.op("aten::mm", at - 20, 8)
                    one.launch("gemm", at - 19, at, UNIT_US, call_us=2)
                    source, target = (rank - 1, rank + 1) if forward else (rank + 1, rank - 1)
                    if 0 <= source < stages:
                        args = message("recv", source, stages)
                        one.device("kernel", "ncclDevKernel_SendRecv", at - 3, 3, stream=20, **args)
                    if 0 <= target < stages:
                        args = message("send", target, stages)
                        one.device("kernel", "ncclDevKernel_SendRecv", at + UNIT_US - 3, 3, stream=21, **args)
        paths.append(one.write(f"rank{rank}.json"))
    return paths


@pytest.mark.parametrize(("stages", "batches"), [(2, 4), (4, 4), (4, 8)])
def test_the_bubble_of_an_even_pipeline_is_the_theoretical_one(
    tmp_path: Path, new_builder: Any, stages: int, batches: int
) -> None:
    job = read_job(gpipe(tmp_path, new_builder, stages, batches, 3), workers=1)
    (pipeline,) = job.pipelines
    assert (pipeline.ranks, pipeline.num_stages, pipeline.num_microbatches, pipeline.num_steps) == (
        list(range(stages)),
        stages,
        batches,
        3,
    )
    assert pipeline.theoretical_bubble == pytest.approx((stages - 1) / (batches + stages - 1))
    assert pipeline.step_ns == 2 * (batches + stages - 1) * UNIT_US * 1000
    assert [stage.bubble for stage in pipeline.stages] == pytest.approx(
        [pipeline.theoretical_bubble] * stages
    )
    assert all(stage.compute_ns == 2 * batches * UNIT_US * 1000 for stage in pipeline.stages)
    assert job.stragglers == []  # waiting for a neighbour is the schedule
    assert job.num_mismatches == {}


def test_data_parallel_jobs_have_no_pipeline(synthetic_job: Any) -> None:
    assert read_job(synthetic_job().write(), workers=1).pipelines == []


def test_the_share_of_gathering_that_computing_hides(tmp_path: Path, new_builder: Any) -> None:
    one = new_builder(tmp_path)
    one.annotate("FSDP::pre_forward (layers.0)", 0, 5)
    gather = {"Collective name": "_allgather_base", "dtype": "Float", "In msg nelems": 10, "Group size": 2}
    for at, hidden in ((0, 0), (100, 40), (200, 30), (300, 10)):
        one.device("kernel", "ncclDevKernel_AllGather", at, 40, stream=20, **gather)
        if hidden:
            one.device("kernel", "gemm", at, hidden)
    (prefetch,) = read_job([one.write()], workers=1).prefetch
    assert (prefetch.num_gathers, prefetch.gather_ns, prefetch.num_exposed) == (4, 160_000, 2)
    assert prefetch.efficiency == pytest.approx(80 / 160)
