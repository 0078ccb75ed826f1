"""What a launcher starts for each rank: the script under observation, with its log, its trace and its end in a folder.

`python -P -m pyrometer.workload.ranks.rank FOLDER script.py …`. Imports no torch: only the script does.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import msgspec

from pyrometer.quantity import Seconds
from pyrometer.record import Record, from_json, to_json
from pyrometer.workload.ranks.world import World, world_of
from pyrometer.workload.script.child import observed_environment, run_child
from pyrometer.workload.script.observed import TraceRequest

REQUEST = "request.json"
TRACE = "recorded.json"
END = "end.json"
FLIGHTS = "512"
"""Collectives that torch's flight recorder keeps, if nothing else is said: what a hang is told from."""


class RankEnd(Record, frozen=True, kw_only=True):
    """How a rank came to its end."""

    rank: int
    num_ranks: int
    host: str
    exit_code: int
    wall_s: Seconds
    interrupted: bool = False
    restarts: int = 0


def folder_of(folder: Path, rank: int) -> Path:
    """Where a rank leaves what was seen of it."""
    return folder / f"rank{rank}"


def run_rank(world: World, folder: Path, argv: list[str]) -> int:
    """Run the script as one rank, under observation; its exit code, 128 + n if signal n ended it."""
    own = folder_of(folder, world.rank)
    shutil.rmtree(own, ignore_errors=True)  # of an attempt before a restart
    own.mkdir(parents=True)
    request = from_json(TraceRequest, (folder / REQUEST).read_bytes())
    request = msgspec.structs.replace(request, path=str(own / TRACE))
    environment = observed_environment(own / "events", to_json(request).decode())
    environment["_PYROMETER_ASKED"] = "1"
    environment.setdefault("TORCH_FR_BUFFER_SIZE", FLIGHTS)
    ended = run_child([sys.executable, *argv], environment)
    end = RankEnd(
        rank=world.rank,
        num_ranks=world.num_ranks,
        host=socket.gethostname(),
        exit_code=ended.exit_code,
        wall_s=ended.wall_s,
        interrupted=ended.interrupted,
        restarts=world.restarts,
    )
    part = own / "end.part"
    part.write_bytes(to_json(end))
    part.rename(own / END)
    return ended.exit_code if ended.exit_code >= 0 else 128 - ended.exit_code


if __name__ == "__main__":
    this = world_of(os.environ) or World(rank=int(os.environ.get("RANK", "0")), num_ranks=1, job="job")
    raise SystemExit(run_rank(this, Path(sys.argv[1]), sys.argv[2:]))
