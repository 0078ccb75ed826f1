"""Reports on all ranks of a trace: file by file, so that memory holds one of them per process and what is left of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pyrometer.errors import InputError
from pyrometer.hardware.peaks import Peaks
from pyrometer.record import Record
from pyrometer.trace.graphs.opening import explained, only_captures, read_joined
from pyrometer.trace.jobs.job import Job, RankFailure
from pyrometer.trace.jobs.summary import RankSummary
from pyrometer.trace.progress import between, heard_by, tell
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reading.repair_log import refuse
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting.rank_report import report_rank, report_settled, settle
from pyrometer.trace.trace import RankTrace, Trace

if TYPE_CHECKING:
    from pyrometer.trace.jobs.executor import Executor  # one file is read without what several take

T = TypeVar("T")


class Digest(Record, frozen=True, kw_only=True):
    """What is left of one rank's trace: its report, and what comparing ranks needs."""

    report: RankReport
    summary: RankSummary
    only_captures: bool = False  # graphs, and launches none

    @property
    def rank(self) -> int:
        """That of the summary, as all that follows."""
        return self.summary.rank

    @property
    def path(self) -> str:
        """The file."""
        return self.summary.path

    @property
    def rank_from(self) -> str:
        """How the rank is known."""
        return self.summary.rank_from


READING = 0.3
"""Share of the time that reading a file takes; the rest is analysing it."""

MOST_ALONE = 16
"""Ranks up to which each is reported on; of more all are compared, and `REPORTED` of them are looked at one by one."""

REPORTED = 8


@dataclass(frozen=True)
class JobReport:
    """All ranks in order, and what they are beside each other."""

    ranks: list[RankReport]
    job: Job | None  # with several ranks


def digest(trace: RankTrace, peaks: Peaks | None = None) -> Digest:
    """Report on one rank and reduce it: a pure function that runs wherever the file is."""
    from pyrometer.trace.jobs.reduce import reduce_rank

    trace = explained(trace)
    return Digest(
        report=report_rank(trace, peaks=peaks), summary=reduce_rank(trace), only_captures=only_captures(trace)
    )


def report_trace(trace: Trace, peaks: Peaks | None = None) -> JobReport:
    """Report on a trace that is open, of a machine with these measured peaks."""
    if len(trace.ranks) == 1:  # nothing to compare it with
        return JobReport([report_rank(explained(trace.ranks[0]), peaks=peaks)], None)
    return _merged([digest(rank, peaks) for rank in trace.ranks], [])


def report_files(
    paths: Sequence[Path], *, strict: bool = False, executor: Executor | None = None
) -> JobReport:
    """Report on the files of a job, one task per file; or on one trace and the capture of its graphs.

    Args:
        paths: one file per rank.
        strict: refuse damaged files.
        executor: where to read the files; by default here for small ones, in a pool of processes for large ones.

    Raises:
        InputError: no file could be used, or `strict` met damage.
    """
    if executor is None and len(paths) == 1:  # nothing is left if it fails, so that its own error tells most
        with between(0.0, READING):
            trace = read_trace(paths[0], strict=strict)
        with between(READING, 1.0):
            settled = settle(explained(trace.ranks[0]))
            del trace  # what was left out of it would be held beside the rest
            return JobReport([report_settled(settled)], None)
    from pyrometer.trace.jobs.executor import executor_for
    from pyrometer.trace.jobs.kept import Kept, kept_folder

    executor = executor or executor_for(paths)
    if len(paths) > MOST_ALONE:
        return _report_many(paths, executor, strict=strict)
    kept = Kept(Digest, kept_folder())
    outcomes = list(_counted(kept.reduced(paths, executor, digest), len(paths)))
    digests = [outcome for outcome in outcomes if isinstance(outcome, Digest)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, RankFailure)]
    if not digests or (strict and failures):
        raise InputError(failures[0].message)
    if strict:
        for one in digests:
            refuse(one.report.repaired)
    if sum(one.only_captures for one in digests) == 1 and len(digests) == len(paths) == 2:
        joined = read_joined(paths, strict=strict)
        if len(joined.ranks) == 1:
            return report_trace(joined)
    return _merged(digests, failures, kept.note)


def _report_many(paths: Sequence[Path], executor: Executor, *, strict: bool) -> JobReport:
    """Compare all ranks, and look at few of them one by one: those that others wait for, and the first."""
    from pyrometer.trace.jobs.kept import Kept, kept_folder
    from pyrometer.trace.jobs.merge import merge_ranks, summarise

    kept = Kept(RankSummary, kept_folder())
    job = _noting(merge_ranks(_counted(summarise(paths, executor, kept), len(paths))), kept.note)
    if not job.ranks or (strict and job.failures):
        raise InputError(job.failures[0].message)
    order = {str(path): place for place, path in enumerate(paths)}
    late = {straggler.rank: place for place, straggler in enumerate(job.stragglers)}
    ordered = sorted(job.ranks, key=lambda row: (late.get(row.rank, len(late)), row.rank))
    chosen = [order[row.path] for row in ordered[:REPORTED]]
    outcomes = executor.map_ranks([paths[place] for place in chosen], digest, chosen)
    digests = [outcome for outcome in outcomes if isinstance(outcome, Digest)]
    for one in digests if strict else ():
        refuse(one.report.repaired)
    reports = sorted((_beside_others(one.report) for one in digests), key=lambda report: report.rank)
    return JobReport(reports, job)


def _counted(outcomes: Iterator[T], number: int) -> Iterator[T]:
    """The same, each told when it is there; what goes on within a file is not."""
    for done in count(1):
        with heard_by(None):
            outcome = next(outcomes, None)
        if outcome is None:
            return
        tell(done / number, f"{done} of {number} files")
        yield outcome


def _merged(digests: Iterable[Digest], failures: Sequence[RankFailure], note: str = "") -> JobReport:
    ordered = sorted(digests, key=lambda one: (one.report.rank, one.report.path))
    several = len(ordered) + len(failures) > 1
    if not several:
        return JobReport([one.report for one in ordered], None)
    from pyrometer.trace.jobs.merge import merge_ranks

    job = _noting(merge_ranks([*(one.summary for one in ordered), *failures]), note)
    used = {row.path for row in job.ranks}
    return JobReport([_beside_others(one.report) for one in ordered if one.report.path in used], job)


def _noting(job: Job, note: str) -> Job:
    return msgspec.structs.replace(job, notes=[*job.notes, note]) if note else job


def _beside_others(report: RankReport) -> RankReport:
    """Without the note that the other ranks are missing: `Job` tells which are."""
    return msgspec.structs.replace(
        report, health=[issue for issue in report.health if issue.code != "one_rank"]
    )
