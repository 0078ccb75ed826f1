"""Recording a commit, and proving a change: one job in pairs each, stored as a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pyrometer.errors import InputError
from pyrometer.guard.check import GuardOptions, guard_check
from pyrometer.guard.gate import GuardReport
from pyrometer.guard.history.record import ProofRequest
from pyrometer.guard.history.series import Recorded
from pyrometer.guard.history.stored import read_jobs, require_same_conditions
from pyrometer.guard.revisions import git, head_revision, repository
from pyrometer.hardware.record import Environment
from pyrometer.store.store import Store

Run: TypeAlias = Callable[[Path, GuardOptions], GuardReport]
"""Runs a job of two commits."""


def adjacent_base(root: Path, head: str, recorded: Sequence[str]) -> str:
    """The commit to measure another against: the nearest before it that is recorded, else its first parent.

    Args:
        root: of the repository.
        head: the commit.
        recorded: commits at the end of trusted jobs.

    Raises:
        InputError: there is no commit before it.
    """
    line = git(root, "rev-list", "--first-parent", head).split()[1:]
    if not line:
        raise InputError(f"{head[:9]}: the first commit, which nothing comes before; record a later one")
    known = set(recorded)
    return next((commit for commit in line if commit in known), line[0])


def record(
    folder: Path,
    options: GuardOptions,
    store: Store | None,
    environment: Environment,
    *,
    restart: bool = False,
    run: Run = guard_check,
) -> GuardReport:
    """Measure a commit against the one that was recorded before it.

    Args:
        folder: in a git repository.
        options: its head is the commit, by default what HEAD is; its base is chosen here.
        store: where the history is; `None` while there is none.
        environment: of this machine.
        restart: begin a new history where the conditions differ.
        run: runs a job.

    Raises:
        InputError: no repository, no such commit, or none before it.
        IncomparableError: the history was recorded under other conditions.
    """
    root = repository(folder)
    kept = None if store is None else read_jobs(store)
    recorded: list[Recorded] = []
    if kept is not None and kept.environment is not None and not restart:
        require_same_conditions(kept.environment, environment)
        recorded = [job for job in kept.records if job.report.trusted]
    head = head_revision(root, options.head or "HEAD")[0].sha
    base = adjacent_base(root, head, [job.ends[1] for job in recorded])
    return run(folder, replace(options, base=base, head=head))


def prove(
    folder: Path, options: GuardOptions, request: ProofRequest, *, run: Run = guard_check
) -> GuardReport:
    """Measure the two ends of a change anew."""
    return run(folder, replace(options, base=request.base_sha, head=request.head_sha))
