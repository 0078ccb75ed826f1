"""Which rank a process is, as launchers say it."""

from __future__ import annotations

import pytest

from pyrometer.workload.ranks.world import world_of

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "abc"}
SLURM = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}


def test_torchrun_and_slurm_are_known():
    world, slurm = world_of(TORCHRUN), world_of(SLURM)
    assert world is not None
    assert slurm is not None
    assert (world.rank, world.num_ranks, world.job) == (3, 8, "abc-29500")
    assert (slurm.rank, slurm.num_ranks, slurm.job) == (1, 2, "77-0")


def test_what_torchrun_started_within_slurm_is_torchruns():
    world = world_of(SLURM | TORCHRUN)
    assert world is not None
    assert world.num_ranks == 8


def test_a_restart_is_counted():
    world = world_of(TORCHRUN | {"TORCHELASTIC_RESTART_COUNT": "2"})
    assert world is not None
    assert world.restarts == 2


@pytest.mark.parametrize(
    "environment",
    [{}, {"RANK": "0"}, {"RANK": "0", "WORLD_SIZE": "1"}, {"RANK": "x", "WORLD_SIZE": "4"}],
    ids=["nothing", "no size", "one rank", "no number"],
)
def test_anything_else_is_no_job(environment):
    assert world_of(environment) is None
