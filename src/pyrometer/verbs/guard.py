"""`pm.guard_check`: a change against its base, as `pyrometer guard check` does."""

from __future__ import annotations

from pathlib import Path

from pyrometer.bench.stage import Progress
from pyrometer.evidence.options import silent
from pyrometer.guard.check import GuardOptions
from pyrometer.guard.check import guard_check as check
from pyrometer.guard.gate import GuardReport
from pyrometer.quantity import Seconds


def guard_check(
    base: str = "main",
    *,
    head: str | None = None,
    select: str | None = None,
    budget_s: Seconds | None = None,
    folder: str | Path = ".",
    progress: Progress = silent,
) -> GuardReport:
    """Compare what is checked out with a base; `.gates` holds every benchmark and metric, `.exit_code()` the outcome.

    Args:
        base: branch, tag or commit.
        head: the commit to judge; by default what is checked out, with changes that are not committed.
        select: which benchmarks, as `-k` of pytest.
        budget_s: no further pair of processes is begun after so long.
        folder: in the repository.
        progress: told of the share done.

    Raises:
        InputError: no repository, no such commit, or an environment that does not build.
    """
    options = GuardOptions(base=base, head=head, select=select, budget_s=budget_s, progress=progress)
    return check(Path(folder), options)
