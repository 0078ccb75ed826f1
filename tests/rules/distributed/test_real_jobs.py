"""Real jobs of two processes on the CPU: each fault is found in the one that has it, and in no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.rules.case import Case
from pyrometer.trace.jobs.executor import SerialExecutor
from pyrometer.trace.reporting.job_report import report_files
from pyrometer.workload.program.record import Program, Wrapper

pytestmark = pytest.mark.slow

WORKER = Path(__file__).parent / "ddp_worker.py"
PARAMETERS = 64 * 64 + 64 + 64 * 8 + 8


@pytest.fixture(scope="module", params=["every", "last", "late"])
def job(request, tmp_path_factory):
    """Name and evidence: gradients reduced in every micro-batch, in the last one, and there with one rank late."""
    folder = tmp_path_factory.mktemp(request.param)
    paths = [folder / f"rank{rank}.json" for rank in range(2)]
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(rank), str(folder / "store"), str(path), request.param],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
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
    report = report_files(paths, executor=SerialExecutor())
    wrapper = Wrapper(
        path="", type_name="DistributedDataParallel", settings={"find_unused_parameters": False}
    )
    program = Program(
        kind="training",
        device="cpu",
        compiled=False,
        grad_mode="grad",
        parameter_dtypes={"float32": PARAMETERS},
        trainable_parameters=PARAMETERS,
        wrappers=[wrapper],
    )
    evidence = Case(
        target="test", trace=report.ranks[0], ranks=tuple(report.ranks), job=report.job, program=program
    )
    return request.param, evidence


def test_reductions_of_every_micro_batch_are_found(findings, job):
    name, evidence = job
    found = findings("PYR603", evidence)
    assert bool(found) is (name == "every")
    if found:
        assert found[0].evidence["times"] == pytest.approx(4.0, rel=0.05)


def test_the_rank_that_sleeps_is_found(findings, job):
    name, evidence = job
    if name == "late":
        (finding,) = findings("PYR607", evidence)
        assert finding.where.rank == 1
        assert finding.cost.share > 0.5
        assert findings("PYR601", evidence) == []  # all of it is waiting
