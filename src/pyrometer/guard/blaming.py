"""`pyrometer guard blame`: which hunks of a change make a benchmark worse, by running the pair without some of them.

Delta debugging (Zeller and Hildebrandt, 2002) over the hunks: the base with a part of them is measured against the base, until no
smaller part shows the regression. A part that does not run says nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

from pyrometer.errors import InputError, PyrometerError
from pyrometer.guard.check import GuardJob, GuardOptions, opened_job
from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.guard.hunks import Blame, Hunk, apply_hunks, hunks_between

T = TypeVar("T")
Trial = Literal["worse", "fine", "unknown"]


def blame(folder: Path, options: GuardOptions, metric: str | None = None) -> Blame:
    """Name the hunks of a change that make a benchmark worse.

    Args:
        folder: in a git repository.
        options: what to compare; the first benchmark that regressed is looked at.
        metric: which of its metrics; by default the first that regressed, counters before times.

    Raises:
        InputError: nothing regressed, so that there is nothing to blame.
    """
    begin = time.monotonic()
    quiet = replace(options, explain=False, journal=None)
    with opened_job(folder, quiet) as job:
        report = job.run()
        gate = _regressed(report, metric)
        base, head = (job.checkouts[side].revision.sha for side in ("base", "head"))
        hunks = hunks_between(job.root, base, head)
        trials: dict[tuple[str, ...], Trial] = {}

        def worse(part: Sequence[Hunk]) -> bool:
            key = tuple(hunk.place for hunk in part)
            if key not in trials:
                quiet.progress(len(trials) / (len(trials) + 5), f"{len(part)} of {len(hunks)} hunks")
                apply_hunks(job.root, base, head, part, job.checkouts["head"].tree)
                trials[key] = _trial(job, gate, len(trials))
            return trials[key] == "worse"

        found = smallest_failing(hunks, worse)
    return Blame(
        benchmark=gate.benchmark,
        metric=gate.metric,
        hunks=found,
        num_hunks=len(hunks),
        num_trials=len(trials),
        gate=gate,
        elapsed_s=time.monotonic() - begin,
    )


def _regressed(report: GuardReport, metric: str | None) -> Gate:
    gates = [gate for gate in report.gates if gate.outcome == "regressed" and metric in {None, gate.metric}]
    if not gates:
        what = f"{metric} did not regress" if metric else "nothing regressed"
        raise InputError(
            f"blame: {what}, so that no hunk is to blame; pyrometer guard check shows every gate"
        )
    return gates[0]


def _trial(whole: GuardJob, gate: Gate, number: int) -> Trial:
    """Whether the tree of the head as it stands shows the regression of one metric."""
    scratch = whole.scratch / f"trial-{number}"
    scratch.mkdir()
    job = GuardJob(
        whole.root, replace(whole.options, select=None), whole.settings, whole.checkouts, scratch, [],
        only=gate.benchmark, counts_only=gate.kind != "time" and gate.metric not in _MEASURED,
    )  # fmt: skip
    try:
        with contextlib.closing(job):
            job.collect()
            report = job.run()
    except PyrometerError:
        return "unknown"
    own = [one for one in report.gates if one.metric == gate.metric]
    if not own or not report.trusted or own[0].outcome == "undecided":
        return "unknown"
    return "worse" if own[0].outcome == "regressed" else "fine"


_MEASURED = frozenset({"host_peak_bytes", "allocated_bytes", "reserved_bytes"})


def smallest_failing(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of the items that fails, of which no smaller part that was tried does; all of them are known to fail.

    >>> smallest_failing(range(16), lambda part: 3 in part and 11 in part)
    [3, 11]
    """
    current, grain = list(items), 2
    while len(current) > 1:
        size = -(-len(current) // grain)
        parts = [current[start : start + size] for start in range(0, len(current), size)]
        rests = [[item for item in current if item not in part] for part in parts]
        failing = next((part for part in parts if fails(part)), None)
        if failing is not None:
            current, grain = failing, 2
            continue
        rest = next((rest for rest in rests if len(parts) > 2 and fails(rest)), None)
        if rest is not None:
            current, grain = rest, max(grain - 1, 2)
        elif grain >= len(current):
            break
        else:
            grain = min(2 * grain, len(current))
    return current
