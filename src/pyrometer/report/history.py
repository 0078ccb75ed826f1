"""Earlier runs of a target as a series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from pyrometer.bench.measurement import Measurement
from pyrometer.errors import InputError
from pyrometer.record import from_dict
from pyrometer.report.attachments import PastRun
from pyrometer.report.facts.measurement import is_sound
from pyrometer.store.run import Run


def past_runs(runs: Sequence[Run]) -> list[PastRun]:
    """The runs that can be looked at beside the newest of them, the oldest first.

    Left out are runs without a measurement, and those of another target, machine (by its fingerprint), variant or clock
    than the newest: a step between them would say nothing about the program. Where the interval of a median and that of
    the run before it lie apart, `change` says so, except between two runs of one commit of which one has caveats. That is for the eye and no verdict: the two were taken at
    different moments, so that the machine may have changed as well; `pyrometer bench --vs` decides.

    Args:
        runs: in any order.
    """
    series = [one for one in map(_measured, sorted(runs, key=lambda run: run.number)) if one is not None]
    alike = [one for one in series if one.terms == series[-1].terms]
    return (
        list(_with_changes(alike)) if alike and alike[-1].run.fingerprint else [_past(one) for one in alike]
    )


def past_run(run: Run) -> PastRun | None:
    """What of a run stands in a series; `None` where no step was timed."""
    one = _measured(run)
    return None if one is None else _past(one)


class _Measured(NamedTuple):
    run: Run
    measurement: Measurement

    @property
    def terms(self) -> tuple[Any, ...]:
        """What must be equal before two runs stand in one series."""
        m = self.measurement
        return self.run.target, self.run.fingerprint, m.name, m.config, m.clock, m.units_per_step


def _measured(run: Run) -> _Measured | None:
    plain = (run.document.get("evidence") or {}).get("measurement")
    if not isinstance(plain, dict):
        return None
    try:
        return _Measured(run, from_dict(Measurement, plain))
    except InputError:
        return None  # a measurement of another version


def _past(one: _Measured) -> PastRun:
    run, m = one.run, one.measurement
    median = next((q for q in m.quantiles if q.quantile == 0.5), None)
    return PastRun(
        run_id=run.id,
        created=run.created_at,
        commit_sha=run.commit_sha,
        median_s=m.median_s,
        low_s=median.low_s if median is not None else m.ci_low_s,
        high_s=median.high_s if median is not None else m.ci_high_s,
        headline=run.headline,
    )


def _with_changes(series: Iterable[_Measured]) -> Iterable[PastRun]:
    before: _Measured | None = None
    for one in series:
        past = _past(one)
        change = None if before is None or _doubtful(before, one) else change_between(_past(before), past)
        yield msgspec.structs.replace(past, change=change)
        before = one


def _doubtful(before: _Measured, after: _Measured) -> bool:
    """Whether two runs of one commit lie apart for their own caveats rather than for the program."""
    same_commit = before.run.commit_sha == after.run.commit_sha
    return same_commit and not (is_sound(before.measurement) and is_sound(after.measurement))


def change_between(before: PastRun, after: PastRun) -> str | None:
    """Whether two intervals lie apart; a median without an interval changes nothing."""
    if before.high_s is not None and after.low_s is not None and after.low_s > before.high_s:
        return "slower"
    if before.low_s is not None and after.high_s is not None and after.high_s < before.low_s:
        return "faster"
    return None
