"""Starting a script on many ranks by torchrun, and what each of them was seen to do."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.record import from_json, to_json
from pyrometer.workload.ranks.rank import END, REQUEST, TRACE, RankEnd, folder_of, run_rank
from pyrometer.workload.ranks.record import Stall
from pyrometer.workload.ranks.stalls import HANG_AFTER_S, StallWatch
from pyrometer.workload.ranks.world import World
from pyrometer.workload.script.child import Ended, run_child
from pyrometer.workload.script.observe import observed_from
from pyrometer.workload.script.observed import ObservedScript, TraceRequest

_PATIENCE_S, _PATIENCE_KILLED_S, _LOOK_S = 60.0, 5.0, 0.1
"""For the other ranks to end after rank 0 has; less where a signal ended it, since the launcher ends the others and then us."""

_SIGNALLED = 128

LAUNCHER = "torch.distributed.run"

NO_EXIT = -9
"""Exit code of a rank that left no word: it was killed together with what watched it."""


@dataclass(frozen=True, kw_only=True)
class LaunchedRank:
    """One rank that was run.

    Attributes:
        end: how it ended; `None` where it left no word.
        observed: the script as a script alone is seen.
        request: what was to be traced, and where the profiler wrote.
    """

    rank: int
    end: RankEnd | None
    observed: ObservedScript
    request: TraceRequest


@dataclass(frozen=True, kw_only=True)
class Launched:
    """A job that has ended.

    Attributes:
        num_ranks: of the job; `ranks` are those that were seen.
        stalls: times in which nothing moved.
    """

    argv: list[str]
    num_ranks: int
    ended: Ended
    ranks: list[LaunchedRank]
    stalls: list[Stall] = field(default_factory=list)


def torchrun(num_ranks: int, module: str, *argv: str) -> list[str]:
    """How a module of ours, which runs a script, is started on ranks of this machine."""
    command = [sys.executable, "-m", LAUNCHER, "--standalone", "--no-python", f"--nproc-per-node={num_ranks}"]
    return [*command, sys.executable, "-P", "-m", module, *argv]


def prepare(folder: Path, request: TraceRequest) -> None:
    """Leave word for the ranks what to trace; several may do so at once."""
    part = folder / f"{REQUEST}.{os.getpid()}"
    part.write_bytes(to_json(request))
    part.replace(folder / REQUEST)


def launch(
    argv: Sequence[str],
    num_ranks: int,
    folder: Path,
    *,
    hang_after_s: Seconds = HANG_AFTER_S,
    tell: Callable[[Stall], None] = lambda _stall: None,
) -> Launched:
    """Run a script on ranks of this machine under torchrun, as it is; all are observed.

    Args:
        argv: the script and its arguments.
        num_ranks: how many.
        folder: prepared, for what the ranks write.
        hang_after_s: ask the ranks where they are when one has not moved for so long.
        tell: called with each stall, from a thread of its own.
    """
    command = torchrun(num_ranks, "pyrometer.workload.ranks.rank", str(folder), *argv)
    with StallWatch(folder, num_ranks, hang_after_s, tell) as watch:
        ended = run_child(command, dict(os.environ))
    ranks = list(launched_ranks(folder, num_ranks, list(argv), ended))
    return Launched(argv=list(argv), num_ranks=num_ranks, ended=ended, ranks=ranks, stalls=watch.stalls)


def meeting_place(world: World, shared: Path | None) -> Path:
    """A folder of this job alone, in which its ranks leave what was seen.

    Raises:
        InputError: it cannot be made.
    """
    # The launcher's process tells jobs of one machine apart, also where they use the same port one after the other.
    local = Path(tempfile.gettempdir()) / f"pyrometer-{os.getuid()}-{os.getppid()}-{world.job}"
    folder = local if shared is None else shared / world.job
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made: {error.strerror}; pass --gather with a folder that all ranks see"
        ) from error
    return folder


def launch_here(
    argv: Sequence[str],
    world: World,
    folder: Path,
    *,
    hang_after_s: Seconds = HANG_AFTER_S,
    tell: Callable[[Stall], None] = lambda _stall: None,
) -> Launched:
    """Run the script as rank 0 of a job that was started elsewhere, and wait until the other ranks have ended, too."""
    with StallWatch(folder, world.num_ranks, hang_after_s, tell) as watch:
        code = run_rank(world, folder, list(argv))
        _wait_for_all(folder, world.num_ranks, _PATIENCE_S if code <= _SIGNALLED else _PATIENCE_KILLED_S)
    own = from_json(RankEnd, (folder_of(folder, 0) / END).read_bytes())
    ended = Ended(own.exit_code, own.wall_s, own.interrupted, timed_out=False)
    ranks = list(launched_ranks(folder, world.num_ranks, list(argv), ended))
    return Launched(argv=list(argv), num_ranks=world.num_ranks, ended=ended, ranks=ranks, stalls=watch.stalls)


def _wait_for_all(folder: Path, num_ranks: int, patience_s: Seconds) -> None:
    """Until each rank has ended, or for as long as it takes to lose patience: a rank may be on a machine that is gone."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if all((folder_of(folder, rank) / END).exists() for rank in range(num_ranks)):
            return
        time.sleep(_LOOK_S)


def launched_ranks(folder: Path, num_ranks: int, argv: list[str], ended: Ended) -> Iterator[LaunchedRank]:
    """What the ranks left in a folder; a rank that never began is left out."""
    request = from_json(TraceRequest, (folder / REQUEST).read_bytes())
    for rank in range(num_ranks):
        own = folder_of(folder, rank)
        if not own.is_dir():
            continue
        word = own / END
        end = from_json(RankEnd, word.read_bytes()) if word.exists() else None
        its = _ended(end, ended)
        yield LaunchedRank(
            rank=rank,
            end=end,
            observed=observed_from(own / "events", argv, its),
            request=msgspec.structs.replace(request, path=str(own / TRACE)),
        )


def _ended(end: RankEnd | None, job: Ended) -> Ended:
    if end is None:
        return Ended(NO_EXIT, job.wall_s, job.interrupted, job.timed_out)
    return Ended(end.exit_code, end.wall_s, end.interrupted, job.timed_out)


def first_error(stderr: str) -> str:
    """What torchrun's output says went wrong: the last line that is an error's, of the first rank that said one."""
    lines = [line.partition("]: ")[2] or line for line in stderr.splitlines()]
    errors = [
        line
        for line in lines
        if "Error" in line.split(":")[0] and not line.startswith((" ", "torch.distributed"))
    ]
    return errors[0] if errors else "a process ended without a word"
