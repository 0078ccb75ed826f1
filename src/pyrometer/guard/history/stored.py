"""A suite's history in a store: jobs of commits (`guard-record`) and of the ends of changes (`guard-proof`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

from pyrometer.errors import IncomparableError, InputError, StoreError
from pyrometer.guard.exchange.past import PastPoint
from pyrometer.guard.gate import GuardReport
from pyrometer.guard.history.history import history_of
from pyrometer.guard.history.record import History
from pyrometer.guard.history.series import Recorded, chain
from pyrometer.guard.revisions import GitError, git
from pyrometer.hardware.fingerprint import Value, must_match
from pyrometer.hardware.record import Environment
from pyrometer.record import Record, doc, from_dict
from pyrometer.store.marks import with_accepted
from pyrometer.store.run import Run
from pyrometer.store.store import Store

CHECK = "guard"
RECORD = "guard-record"
PROOF = "guard-proof"
PAST = "guard-past"
FEWEST_DIGITS = 4
"""Of a commit that is named by its beginning."""


class Kept(NamedTuple):
    """The jobs of one machine, the oldest first."""

    environment: Environment | None
    records: list[Recorded]
    proofs: list[Recorded]
    checks: list[Recorded]
    num_elsewhere: int  # records of other machines or settings


class Removed(Record, frozen=True, kw_only=True):
    """What `guard prune` deleted, or would delete."""

    runs: Annotated[list[str], doc("ids")]
    num_kept: Annotated[int, doc("recorded commits that stay")]


def read_jobs(store: Store) -> Kept:
    """All jobs of the machine that recorded last; damaged runs are passed over.

    Raises:
        StoreError: the store cannot be read.
    """
    runs = {kind: list(_loaded(store, kind)) for kind in (RECORD, PROOF, CHECK)}
    if not runs[RECORD]:
        return Kept(None, [], [], [], 0)
    environment = from_dict(Environment, runs[RECORD][-1].environment)
    terms = conditions(environment)
    alike = {
        kind: [run for run in found if conditions(from_dict(Environment, run.environment)) == terms]
        for kind, found in runs.items()
    }
    records, proofs, checks = ([_recorded(run) for run in alike[kind]] for kind in (RECORD, PROOF, CHECK))
    return Kept(environment, records, proofs, checks, len(runs[RECORD]) - len(records))


def _loaded(store: Store, kind: str) -> Iterable[Run]:
    for summary in reversed(store.runs(kind=kind)):
        try:
            run = store.load(summary.id)
            report = from_dict(GuardReport, run.document)
        except (InputError, StoreError):
            continue
        if report.base is not None and report.head is not None:
            yield run


def read_past_points(store: Store) -> list[PastPoint]:
    """What other tools measured, the oldest first; damaged runs are passed over.

    Raises:
        StoreError: the store cannot be read.
    """
    points: list[PastPoint] = []
    for summary in store.runs(kind=PAST):
        with contextlib.suppress(InputError, StoreError):
            points.append(from_dict(PastPoint, store.load(summary.id).document))
    return sorted(points, key=lambda point: point.taken_at or "")


def _recorded(run: Run) -> Recorded:
    return Recorded(run.id, run.created_at, from_dict(GuardReport, run.document))


def conditions(environment: Environment) -> dict[str, Value]:
    """What must stay the same within a history: all that makes two results comparable, and the driver."""
    drivers = {gpu.driver for gpu in environment.gpus if gpu.driver}
    return {**must_match(environment), "driver": ", ".join(sorted(drivers)) or None}


def require_same_conditions(before: Environment, now: Environment) -> None:
    """Refuse to go on with a history elsewhere: ratios of two machines do not multiply.

    Raises:
        IncomparableError: names the fields that differ, with both values.
    """
    old, new = conditions(before), conditions(now)
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if differing:
        words = "; ".join(
            f"{name}: {old.get(name) or 'not set'} and {new.get(name) or 'not set'}" for name in differing
        )
        raise IncomparableError(
            f"the history was recorded under different conditions ({words}); record there, or begin a new history by --restart"
        )


def read_history(store: Store, root: Path | None = None, kept: Kept | None = None) -> History:
    """What a store knows of a suite.

    Args:
        store: where its jobs are.
        root: of the repository, which tells the commits of a range; without it ranges are named by their ends.
        kept: the jobs, where they were read already.

    Raises:
        StoreError: the store cannot be read.
    """
    kept = kept or read_jobs(store)

    def between(base: str, head: str) -> list[str]:
        return [] if root is None else commits_between(root, base, head)

    return history_of(
        kept.records, kept.proofs, kept.checks, accepted=store.marks().accepted, commits_between=between
    )


def commits_between(root: Path, base: str, head: str) -> list[str]:
    """The commits after one up to another on the line of first parents, the oldest first; none where git cannot tell."""
    try:
        return git(root, "rev-list", "--first-parent", "--reverse", f"{base}..{head}").split()
    except GitError:
        return []


def accept(store: Store, commit: str, reason: str | None) -> str:
    """Accept what changed up to a commit, or take that back where there is no reason; returns the whole commit.

    Raises:
        InputError: no change, or more than one, ends at such a commit.
        StoreError: the store cannot be read or written.
    """
    changes = read_history(store).changes
    ends = dict.fromkeys(change.point.head_sha for change in changes)
    found = [end for end in ends if end.startswith(commit) and len(commit) >= FEWEST_DIGITS]
    if len(found) != 1:
        listed = ", ".join(end[:9] for end in ends) or "none"
        said = "several changes end" if found else "no change ends"
        raise InputError(f"{commit}: {said} at a commit that begins like this; changes end at: {listed}")
    store.change_marks(lambda marks: with_accepted(marks, found[0], reason))
    return found[0]


def prune(store: Store, *, keep: int, dry_run: bool = False) -> Removed:
    """Delete all but the newest recorded commits, and proofs whose ends are gone; other machines' jobs, too.

    Raises:
        StoreError: the store cannot be written.
    """
    kept = read_jobs(store)
    staying = chain(kept.records)[-keep:] if keep else []
    commits = {sha for job in staying for sha in job.ends}
    ids = {job.run_id for job in staying} | {
        job.run_id for job in kept.proofs if commits.issuperset(job.ends)
    }
    doomed = [run.id for kind in (RECORD, PROOF) for run in store.runs(kind=kind) if run.id not in ids]
    if not dry_run:
        store.delete(doomed)
    return Removed(runs=doomed, num_kept=len(staying))
