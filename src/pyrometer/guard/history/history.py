"""A suite's history in one record: trends, changes, and how often its jobs alarmed at nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from pyrometer.guard.history.changes import find_changes
from pyrometer.guard.history.proofs import requests, with_proofs
from pyrometer.guard.history.record import History, SelfChecks
from pyrometer.guard.history.series import CONFIDENCE, Recorded, all_series, chain

GATED = frozenset({"median_s", "allocated_bytes"})
"""Of measured metrics those in which change points are looked for; tails and first calls vary too much from job to job."""


def history_of(
    records: Sequence[Recorded],
    proofs: Sequence[Recorded] = (),
    others: Sequence[Recorded] = (),
    *,
    accepted: Mapping[str, str] | None = None,
    commits_between: Callable[[str, str], list[str]] = lambda _base, _head: [],
) -> History:
    """Put stored jobs together.

    Args:
        records: jobs of one machine, each of a commit against one before it, the oldest first.
        proofs: jobs of the two ends of changes.
        others: further jobs, such as those of changes under review, for the rate of alarms.
        accepted: reasons by commit.
        commits_between: what the repository has after a commit up to another.
    """
    jobs = chain(records)
    series = all_series(jobs)
    points = [point for one in series if one.metric in GATED or one.is_exact for point in find_changes(one)]
    order = {job.ends[1]: place for place, job in enumerate(jobs)}
    points.sort(key=lambda point: order[point.head_sha])
    changes = [
        msgspec.structs.replace(change, commits=commits_between(change.point.base_sha, change.point.head_sha))
        for change in with_proofs(points, proofs, accepted or {})
    ]
    num_untrusted = sum(not job.report.trusted for job in records)
    return History(
        num_commits=len(jobs),
        first_sha=jobs[0].ends[0] if jobs else None,
        last_sha=jobs[-1].ends[1] if jobs else None,
        series=series,
        changes=changes,
        to_prove=requests(changes),
        self_checks=self_checks([*records, *proofs, *others]),
        num_outside=len(records) - len(jobs) - num_untrusted,
        num_untrusted=num_untrusted,
    )


def self_checks(jobs: Sequence[Recorded]) -> SelfChecks:
    """The long-run rate at which jobs alarm where nothing changed."""
    from scipy import stats  # takes longer to import than a listing takes

    checked = [job for job in jobs if job.report.self_check is not None]
    n, alarms = len(checked), sum(not job.report.trusted for job in checked)
    tail = (1 - CONFIDENCE) / 2
    low = float(stats.beta.ppf(tail, alarms, n - alarms + 1)) if alarms else 0.0
    high = float(stats.beta.ppf(1 - tail, alarms + 1, n - alarms)) if alarms < n else 1.0
    return SelfChecks(num_jobs=n, num_alarms=alarms, rate=alarms / n if n else None, ci_low=low, ci_high=high)
