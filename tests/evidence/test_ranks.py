"""A script on two real ranks: one report of both, whatever happens to one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pyrometer.errors import TargetError
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.ranks import observe_ranks
from pyrometer.report.facts.launch import told

SCRIPT = Path(__file__).parents[1] / "workload" / "scripts" / "ranks.py"


def observe(*arguments, **beside):
    return observe_ranks([str(SCRIPT), *arguments], 2, ObserveOptions(), **beside).evidence


@pytest.fixture(scope="module")
def slow():
    """A job in which rank 1 loads slowly."""
    return observe("slow")


def test_a_script_that_is_missing_is_refused():
    with pytest.raises(TargetError, match="no such file"):
        observe_ranks(["missing.py"], 2, ObserveOptions())


@pytest.mark.slow
def test_every_rank_is_observed_and_the_late_one_leads(slow):
    assert [(one.rank, one.exit_code, one.num_steps) for one in slow.launch.ranks] == [(0, 0, 20), (1, 0, 20)]
    assert all(one.is_traced for one in slow.launch.ranks)
    assert slow.job.stragglers[0].rank == 1
    assert slow.launch.leading == 1
    assert slow.trace.rank == 1
    shares = [one.data_share for one in slow.launch.ranks]
    assert shares[1] > 0.5 > shares[0]


@pytest.mark.slow
def test_the_global_batch_has_all_its_factors(slow):
    first = slow.launch.ranks[0]
    assert (first.micro_batch, first.accumulation, slow.launch.global_batch) == (4, 2, 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "code"), [pytest.param("raises", 1, marks=pytest.mark.exhaustive), ("killed", -9)]
)
def test_of_a_rank_that_dies_the_others_evidence_is_kept(mode, code):
    seen = observe(mode)
    assert {one.rank: one.exit_code for one in seen.launch.ranks}[1] == code
    assert seen.launch.failed[0].rank == 1
    assert seen.launch.ranks[0].num_steps >= 9
    assert seen.job is not None, "both had been traced by then"


@pytest.mark.slow
def test_a_hang_is_told_with_rank_collective_and_line_while_it_lasts(tmp_path):
    release = tmp_path / "go on"
    heard = []

    def tell(stall):
        heard.append(stall)
        release.touch()

    seen = observe("hangs", str(release), hang_after_s=2.0, tell=tell)
    assert len(heard) == 1
    assert [one.rank for one in heard[0].waiting] == [0]
    assert heard[0].waiting[0].operation == "gloo:all_reduce"
    assert [(one.rank, one.function) for one in heard[0].missing] == [(1, "wait_for")]
    assert "waits in all_reduce" in told(heard[0])
    assert [stall.resumed for stall in seen.launch.stalls] == [True]
    assert [one.exit_code for one in seen.launch.ranks] == [0, 0]


@pytest.mark.slow
def test_under_a_torchrun_of_ones_own_rank_0_reports_on_all(tmp_path):
    verb = [sys.executable, "-m", "pyrometer", "check", "--json", "--no-store", str(SCRIPT), "--", "well"]
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "--no-python",
    ]
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    ended = subprocess.run(
        [*torchrun, *verb],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(meeting)},
        capture_output=True,
        check=True,
        timeout=300,
    )
    document = msgspec.json.decode(ended.stdout)
    assert b"rank 0 has begun" in ended.stderr
    assert [one["rank"] for one in document["evidence"]["launch"]["ranks"]] == [0, 1]
    assert document["evidence"]["job"]["world_size"] == 2
    assert not list(meeting.glob("pyrometer-*")), "nothing is left where the ranks met"
