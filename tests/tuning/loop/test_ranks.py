"""Several processes train one model: they stop together, and go on from a checkpoint that all of them have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import training_program

pytestmark = pytest.mark.slow  # starts processes
PROGRAM = Path(training_program.__file__).with_name("training_ranks.py")


def trained(meeting, folder, steps):
    ranks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), "2", str(meeting), str(folder), str(steps)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    outputs = [rank.communicate()[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def test_ranks_resume_from_what_all_have_and_end_as_if_they_had_not_stopped(tmp_path):
    reference = trained(tmp_path / "first", "none", 10)
    assert reference[0]["weights"] == reference[1]["weights"]
    folder = tmp_path / "made"
    trained(tmp_path / "second", folder, 6)
    (folder / "rank1" / "step-00000006" / "state.pt").write_bytes(b"torn")
    resumed = trained(tmp_path / "third", folder, 10)
    assert [rank["first"] for rank in resumed] == [4, 4]
    for before, after in zip(reference, resumed, strict=True):
        assert after["weights"] == before["weights"]
        assert after["losses"] == before["losses"][4:]


def test_a_signal_to_one_rank_stops_all_at_the_same_step(tmp_path):
    ranks = trained(tmp_path / "meeting", tmp_path / "made", 100)
    assert [rank["step"] for rank in ranks] == [6, 6]
    assert ranks[0]["weights"] == ranks[1]["weights"]
