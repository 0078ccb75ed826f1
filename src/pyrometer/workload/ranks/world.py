"""Which rank this process is, as its launcher says."""

from __future__ import annotations

from collections.abc import Mapping

from pyrometer.record import Record

_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", ("TORCHELASTIC_RUN_ID", "MASTER_PORT")),
    ("SLURM_PROCID", "SLURM_NTASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)
"""Variables of the rank, of the number of ranks, and of what tells one job from another: torchrun's, then SLURM's."""


class World(Record, frozen=True, kw_only=True):
    """A rank of a job."""

    rank: int
    num_ranks: int
    job: str
    """Tells this job from others on the same disk."""

    restarts: int = 0


def world_of(environment: Mapping[str, str]) -> World | None:
    """The rank of this process; `None` where no launcher started it, or only one rank.

    >>> world_of({"RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "29500"})
    World(rank=1, num_ranks=4, job='29500', restarts=0)
    """
    for rank, size, names in _LAUNCHERS:
        said = environment.get(rank, ""), environment.get(size, "")
        if not all(text.isdecimal() for text in said) or int(said[1]) < 2:
            continue
        return World(
            rank=int(said[0]),
            num_ranks=int(said[1]),
            job="-".join(environment[name] for name in names if environment.get(name)) or "job",
            restarts=int(environment.get("TORCHELASTIC_RESTART_COUNT") or 0),
        )
    return None
