"""A real job of two processes on the CPU: the sleeping rank is found by what its peer waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.trace.analysis.collectives import collectives
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.jobs.merge import read_job
from pyrometer.trace.reading.read import read_trace

pytestmark = pytest.mark.slow

SLEEP_S = 0.15
WORKER = Path(__file__).parent / "gloo_worker.py"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The traces of both ranks."""
    folder = tmp_path_factory.mktemp("gloo")
    paths = [folder / f"rank{rank}.json" for rank in range(2)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(rank), "2", str(folder / "store"), str(path), str(SLEEP_S)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank, path in enumerate(paths)
    ]
    try:
        told = [worker.communicate(timeout=120)[0].decode() for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], told
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return paths


@pytest.fixture(scope="module")
def job(traces: list[Path]) -> Job:
    """Both ranks compared."""
    return read_job(traces, workers=1)


def test_the_rank_that_sleeps_is_the_straggler(job: Job) -> None:
    worst = job.stragglers[0]
    assert worst.rank == 1
    assert worst.persistence == 1.0
    slept_ns = 3 * SLEEP_S * 1e9
    assert 0.5 * slept_ns < worst.delay_ns < 4 * slept_ns  # a busy machine adds to it
    assert worst.suspects[0].side == "host"
    assert worst.suspects[0].name == "between operators"
    assert 0.5 * slept_ns < worst.suspects[0].excess_ns < 4 * slept_ns


def test_every_collective_of_both_ranks_is_matched(job: Job) -> None:
    names = {collective.name: collective for collective in job.collectives}
    assert set(names) == {"all_reduce", "barrier"}
    assert names["barrier"].num_matched == 3
    assert names["all_reduce"].num_matched >= 3
    assert job.num_mismatches == {}
    assert job.missing_ranks == []
    assert names["all_reduce"].bus_bandwidth


def test_runs_of_the_worker_threads_are_paired_with_their_operators(traces: list[Path]) -> None:
    trace = read_trace(traces[0]).ranks[0]
    (reduces,) = (group for group in collectives(trace).groups if group.name == "all_reduce")
    parameters = 64 * 64 + 64 + 64 * 8 + 8
    assert reduces.op == "c10d::allreduce_"
    assert reduces.bytes == 3 * parameters * 4
    assert reduces.num_async == reduces.num_calls == reduces.num_timed
    assert reduces.dtype == "float"
