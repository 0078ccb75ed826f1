"""Several processes train one model: they stop together, and go on from a checkpoint that all of them have."""

from __future__ import annotations

from pathlib import Path

import pytest
import training_program
from forked import on_ranks

pytestmark = pytest.mark.slow  # starts processes
PROGRAM = Path(training_program.__file__).with_name("training_ranks.py")
SPREAD = PROGRAM.with_name("training_spread.py")
STEPS = 7


@pytest.fixture
def trained(tmp_path_factory):
    def run(*arguments):
        folder = tmp_path_factory.mktemp("told")
        return on_ranks(PROGRAM, 2, folder, folder / "meeting", *arguments)

    return run


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    """Trains for some steps; those who want the same without a checkpoint share it."""
    whole = {}

    def run(kind, folder="none", steps=STEPS, num_ranks=2):
        key = (kind, num_ranks)
        if folder == "none" and key in whole:
            return whole[key]
        place = tmp_path_factory.mktemp("told")
        ranks = on_ranks(SPREAD, num_ranks, place, place / "meeting", kind, folder, steps)
        return whole.setdefault(key, ranks) if folder == "none" else ranks

    return run


def test_ranks_resume_from_what_all_have_and_end_as_if_they_had_not_stopped(trained, tmp_path):
    reference = trained("none", 10)
    assert reference[0]["weights"] == reference[1]["weights"]
    folder = tmp_path / "made"
    trained(folder, 6)
    (folder / "rank1" / "step-00000006" / "state.pt").write_bytes(b"torn")
    resumed = trained(folder, 10)
    assert [rank["first"] for rank in resumed] == [4, 4]
    for before, after in zip(reference, resumed, strict=True):
        assert after["weights"] == before["weights"]
        assert after["losses"] == before["losses"][4:]


def test_a_signal_to_one_rank_stops_all_at_the_same_step(trained, tmp_path):
    ranks = trained(tmp_path / "made", 100)
    assert [rank["step"] for rank in ranks] == [6, 6]
    assert ranks[0]["weights"] == ranks[1]["weights"]


@pytest.mark.parametrize("kind", [pytest.param("ddp", marks=pytest.mark.exhaustive), "fsdp2"])
def test_ranks_train_as_one_process_with_the_global_batch_and_send_once_per_update(kind, spread):
    (alone,), ranks = spread("ddp", num_ranks=1), spread(kind)
    means = [sum(each) / 2 for each in zip(*(rank["losses"] for rank in ranks), strict=True)]
    assert means == pytest.approx(alone["losses"], abs=1e-5)
    assert ranks[0]["weights"] == ranks[1]["weights"] == pytest.approx(alone["weights"], abs=1e-4)
    # Batches run out within the third accumulation of an epoch: that update sends, too, and is a step of the scheduler.
    assert [rank["sent"] for rank in ranks] == [STEPS, STEPS]
    assert [rank["scheduler"] for rank in (*ranks, alone)] == [STEPS] * 3


@pytest.mark.exhaustive
def test_sharded_ranks_resume_bit_for_bit(spread, tmp_path):
    reference = spread("fsdp2")
    spread("fsdp2", tmp_path / "made", 4)
    resumed = spread("fsdp2", tmp_path / "made")
    for before, after in zip(reference, resumed, strict=True):
        assert after["first"] == 4
        assert after["weights"] == before["weights"]
        assert after["losses"] == before["losses"][4:]
