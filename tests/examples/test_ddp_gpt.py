"""The GPT in data parallel: it learns on two ranks, and each writes a trace that tells of the other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.trace.jobs.merge import read_job

SCRIPT = Path(__file__).parents[2] / "examples" / "ddp_gpt.py"


@pytest.mark.exhaustive
def test_two_ranks_learn_and_record_the_same_steps(tmp_path):
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    options = ["--steps", "9", "--batch-size", "2", "--accumulate", "2", "--trace", str(tmp_path / "ranks")]
    done = subprocess.run(
        [*launch, str(SCRIPT), *options],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(re.findall(r"step +9  loss ([\d.]+)", done.stdout)[0]) < 6.5
    job = read_job([tmp_path / "ranks" / f"rank{rank}.json.gz" for rank in (0, 1)], workers=1)
    assert job.world_size == 2
    assert job.warnings == []
    assert [row.num_steps for row in job.ranks] == [5, 5]
    assert {one.name for one in job.collectives} == {"all_reduce"}
    assert job.num_matched >= 5


def test_too_few_steps_to_trace_are_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--steps", "3", "--trace", str(tmp_path / "ranks")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "--trace needs at least 9" in done.stderr
    assert not (tmp_path / "ranks").exists()
