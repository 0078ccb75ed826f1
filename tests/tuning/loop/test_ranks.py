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
SPREAD = PROGRAM.with_name("training_spread.py")
STEPS = 7


def trained(*arguments, program=PROGRAM, num_ranks=2):
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(num_ranks), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for rank in range(num_ranks)
    ]
    outputs = [rank.communicate()[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * num_ranks
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


def spread(kind, folder, steps, meeting, num_ranks=2):
    return trained(meeting, kind, folder, steps, program=SPREAD, num_ranks=num_ranks)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process with the global batch."""
    return spread("ddp", "none", STEPS, tmp_path_factory.mktemp("alone") / "unused", num_ranks=1)[0]


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_ranks_train_as_one_process_with_the_global_batch_and_send_once_per_update(kind, alone, tmp_path):
    ranks = spread(kind, "none", STEPS, tmp_path / "meeting")
    means = [sum(each) / 2 for each in zip(*(rank["losses"] for rank in ranks), strict=True)]
    assert means == pytest.approx(alone["losses"], abs=1e-5)
    assert ranks[0]["weights"] == ranks[1]["weights"] == pytest.approx(alone["weights"], abs=1e-4)
    # Batches run out within the third accumulation of an epoch: that update sends, too, and is a step of the scheduler.
    assert [rank["sent"] for rank in ranks] == [STEPS, STEPS]
    assert [rank["scheduler"] for rank in (*ranks, alone)] == [STEPS] * 3


def test_sharded_ranks_resume_bit_for_bit(tmp_path):
    reference = spread("fsdp2", "none", STEPS, tmp_path / "first")
    spread("fsdp2", tmp_path / "made", 4, tmp_path / "second")
    resumed = spread("fsdp2", tmp_path / "made", STEPS, tmp_path / "third")
    for before, after in zip(reference, resumed, strict=True):
        assert after["first"] == 4
        assert after["weights"] == before["weights"]
        assert after["losses"] == before["losses"][4:]
