"""`pyrometer guard blame`: which hunks of a change make a benchmark worse, by running the pair with some of them.

Delta debugging (Zeller and Hildebrandt, 2002) over the hunks: the base with a part of them is measured against the base, until no
smaller part shows more than half of what the whole change does. A part that does not run says nothing.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from pyrometer.errors import InputError, PyrometerError
from pyrometer.guard.check import Focus, GuardJob, GuardOptions, opened_job
from pyrometer.guard.environments import Checkout, build_environment, is_installed
from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.guard.hunks import Blame, Hunk, apply_hunks, changes_code, hunks_between

T = TypeVar("T")
Trial = Literal["worse", "fine", "unknown"]
HALF = 0.5
"""Of the effect of the whole change. What one hunk brings lies above, as a rule, and what the others bring below."""

_PAIRED = frozenset({"host_peak_bytes", "allocated_bytes", "reserved_bytes"})
"""Metrics that pairs tell, beside times."""


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
    with opened_job(folder, replace(options, explain=False, journal=None)) as job:
        # A counter that has regressed names its hunk without a pair.
        job.focus = Focus(times=lambda counted: not _worse(counted, metric))
        found = blame_in(job, job.run(), metric)
    return msgspec.structs.replace(found, elapsed_s=time.monotonic() - begin)


def blame_in(job: GuardJob, report: GuardReport, metric: str | None = None) -> Blame:
    """Name the hunks in a job that has run; its tree of the head holds some part of the change afterwards.

    Raises:
        InputError: nothing regressed.
    """
    begin = time.monotonic()
    search = Search(job, _regressed(report, metric))
    hunks = hunks_between(job.root, search.base, search.head)
    found = smallest_failing(
        [hunk for hunk in hunks if changes_code(job.root, search.base, hunk)], search.shows_it
    )
    return Blame(
        benchmark=search.gate.benchmark,
        metric=search.gate.metric,
        hunks=found,
        num_hunks=len(hunks),
        num_trials=len(search.trials),
        gate=search.gate,
        elapsed_s=time.monotonic() - begin,
    )


def _regressed(report: GuardReport, metric: str | None) -> Gate:
    gates = _worse(report.gates, metric)
    if not gates:
        what = f"{metric} did not regress" if metric else "nothing regressed"
        raise InputError(
            f"blame: {what}, so that no hunk is to blame; pyrometer guard check shows every gate"
        )
    return gates[0]


def _worse(gates: Sequence[Gate], metric: str | None) -> list[Gate]:
    return [gate for gate in gates if gate.outcome == "regressed" and metric in {None, gate.metric}]


@dataclass
class Search:
    """Parts of a change that are tried on one gate.

    Attributes:
        job: of the whole change, whose tree of the head holds one part after the other.
        gate: that regressed.
        trials: what was found, by the places of the hunks.
    """

    job: GuardJob
    gate: Gate
    trials: dict[tuple[str, ...], Trial] = field(default_factory=dict)
    _interpreters: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The commit that the hunks start from."""
        return self.job.checkouts["base"].revision.sha

    @property
    def head(self) -> str:
        """The commit that they lead to."""
        return self.job.checkouts["head"].revision.sha

    def shows_it(self, part: Sequence[Hunk]) -> bool:
        """Whether the base with a part of the change is worse by more than half of what all of it brings."""
        key = tuple(hunk.place for hunk in part)
        if key not in self.trials:
            number = len(self.trials)
            self.job.options.progress(number / (number + 5), f"a part of {len(part)} hunks")
            apply_hunks(self.job.root, self.base, self.head, part, self.job.checkouts["head"].tree)
            try:
                self.trials[key] = self._tried(part, number)
            except PyrometerError:
                self.trials[key] = "unknown"
        return self.trials[key] == "worse"

    def _tried(self, part: Sequence[Hunk], number: int) -> Trial:
        whole, own = self.job, self.gate.benchmark
        scratch = whole.scratch / f"trial-{number}"
        scratch.mkdir()
        paired = self.gate.kind == "time" or self.gate.metric in _PAIRED
        focus = Focus(
            names=frozenset({own, whole.renamed.get(own, own)}),
            counts=not paired,
            times=lambda _counted: paired,
            is_open=lambda gate: gate.metric == self.gate.metric and self.read(gate) == "unknown",
        )
        sides = {**whole.checkouts, "head": self._checkout(part, scratch)}
        options = replace(whole.options, select=None)
        job = GuardJob(whole.root, options, whole.settings, sides, scratch, [], focus)
        with contextlib.closing(job):
            job.collect()
            report = job.run()
        return next((self.read(gate) for gate in report.gates if gate.metric == self.gate.metric), "unknown")

    def read(self, gate: Gate) -> Trial:
        """Whether all of the interval lies on one side of half the effect."""
        low, high = _share_of(self.gate, gate)
        return "worse" if low > HALF else "fine" if high < HALF else "unknown"

    def _checkout(self, part: Sequence[Hunk], scratch: Path) -> Checkout:
        """The head's side for a part; with an environment made for it, where the sides have their own."""
        side = self.job.checkouts["head"]
        if all(each.python == sys.executable for each in self.job.checkouts.values()):
            return side
        key = tuple(hunk.place for hunk in part if is_installed(hunk.file))
        if key not in self._interpreters:
            folder = self.job.scratch / f"env-{scratch.name}"
            self._interpreters[key] = build_environment(
                side.tree, folder, self.job.settings, "head", shared=False
            )
        return replace(side, python=self._interpreters[key])


def _share_of(whole: Gate, part: Gate) -> tuple[float, float]:
    """How much of the effect of a whole change a part of it has: an interval, or where there is none one figure twice."""
    ends = [whole.ratio, part.ci_low, part.ci_high]
    ratios = [math.log(end) for end in ends if end]
    if len(ratios) == len(ends):
        low, high = sorted(end / ratios[0] for end in ratios[1:])
        return low, high
    if None in (part.base, part.head, whole.base, whole.head) or (
        part.ratio is not None and part.ci_low is None
    ):
        return -math.inf, math.inf
    figures = [one or 0.0 for one in (part.head, part.base, whole.head, whole.base)]
    share = (figures[0] - figures[1]) / (figures[2] - figures[3])
    return share, share


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
