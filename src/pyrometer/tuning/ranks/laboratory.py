"""A script on many ranks, opened in as many configurations as are asked for: each in processes and a process group of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from pyrometer.bench.measure import DEFAULT_CONFIDENCE
from pyrometer.bench.measurement import Measurement, MemoryUse
from pyrometer.bench.summary import Observation, summarise
from pyrometer.bench.worker import Asked, Ran, Run
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.tuning.levers.choice import Configuration
from pyrometer.tuning.ranks.forks import Forks
from pyrometer.tuning.ranks.held import HeldRanks, require_launcher
from pyrometer.tuning.trials.gate import CaseError, Limits, Numerics
from pyrometer.tuning.trials.laboratory import Laboratory, OpenConfiguration
from pyrometer.tuning.trials.protocol import Source
from pyrometer.tuning.trials.results import beyond
from pyrometer.workload.target import Target

HANG_S: Seconds = 60.0
"""For opening a configuration, at least: after it a rank is taken to hang."""

SLOWER_START = 5
"""Times what the baseline took to be opened, which any other is given."""

RANDOM = (
    "two launches of the script as it is differ in their losses, though their generators begin alike: seed what takes its seed "
    "from the clock, and order what depends on timing, to have them compared"
)
REPEATABLE = 1e-2


def laboratory_for(target: Target, forks: Forks, folder: Path, limits: Limits) -> RankLaboratory:
    """A laboratory for a script.

    Raises:
        InputError: it is no script, there is nothing to communicate, or no torchrun.
    """
    if target.kind != "script":
        raise InputError(
            f"--nproc: {target.text} is a workload, of one process; name the script that torchrun would start"
        )
    if forks.num_ranks < 2:
        raise InputError(
            f"--nproc: got {forks.num_ranks}; one rank sends nothing, so that there is nothing to tune: give 2 or more, or leave it "
            "out and name a factory, such as train.py:workload"
        )
    require_launcher()
    argv = [target.place, *target.spec.args]
    return RankLaboratory(Source(), folder, limits, cwd=target.spec.cwd, argv=argv, forks=forks)


@dataclass
class RankLaboratory(Laboratory):
    """One script, in as many configurations as are asked for."""

    num_steps = 240  # ranks wait for each other, and what delays one delays all
    num_blocks = 60
    more_pairs = 2  # which cost little, being forked, and differ more than those of one process

    argv: list[str] = field(default_factory=list)
    forks: Forks = field(default_factory=lambda: Forks(2))
    _opening_s: Seconds = field(default=0.0, init=False)
    _spread: CaseError | None = field(default=None, init=False)

    @property
    def num_ranks(self) -> int:
        """How many ranks it runs on."""
        return self.forks.num_ranks

    def open(
        self, configuration: Configuration, *, fresh_seed: int | None = None, timeout_s: Seconds | None = None
    ) -> OpenConfiguration:
        """Launch the script with a configuration, and hold it after its first steps.

        Raises:
            PyrometerError: it cannot be opened: a rank failed, died or hangs.
        """
        limit_s = timeout_s or self.open_s
        if configuration:
            limit_s = min(limit_s, max(HANG_S, SLOWER_START * self._opening_s))
        side = super().open(configuration, fresh_seed=fresh_seed, timeout_s=limit_s)
        if not configuration:
            self._opening_s = max(self._opening_s, side.elapsed_s)
        return side

    def _started(self, stack: contextlib.ExitStack, room: Path, fresh_seed: int | None) -> Asked:
        name = "log.txt" if fresh_seed is None else f"log-{fresh_seed}.txt"
        ranks = HeldRanks(self.forks, self.argv, self.cwd, room / name)
        stack.callback(ranks.close)
        return ranks

    def keep_reference(self, baseline: OpenConfiguration) -> None:
        """Write down what the script computes as it is, and see whether another launch computes the same."""
        super().keep_reference(baseline)
        with self.open(()) as again:
            losses = super().check(again).cases[0]
        is_random = losses.mismatch is not None or (losses.max_rel or 0.0) > REPEATABLE
        self._spread = losses if is_random else None

    def check(self, side: OpenConfiguration, *, timeout_s: Seconds | None = None) -> Numerics:
        """Hold the losses and gradients of a configuration against those of the script as it is."""
        numerics = super().check(side, timeout_s=timeout_s)
        if self._spread is None:
            return numerics
        far = [beyond(case, self._spread) for case in numerics.cases if case.label == self._spread.label]
        refused = next((f"{case.label}: {case.mismatch}" for case in far if case is not None), None)
        skipped = [replace(case, skipped=RANDOM) for case in numerics.cases]
        return replace(numerics, cases=skipped, refused=refused)

    def measure(self, side: OpenConfiguration, budget_s: Seconds) -> Measurement:
        """Time the steps of a configuration: each on the slowest rank."""
        begin = time.monotonic()
        times = list(self._timed(side, begin + budget_s))
        measurement = summarise(
            Observation(
                name=side.opened.name,
                clock=side.opened.clock,
                first_call_s=side.opened.first_call_s,
                times_s=times,
                memory=MemoryUse(
                    device=side.opened.device,
                    source="the rank that takes most",
                    peak_bytes=self.peak_bytes(side),
                    start_bytes=0,
                    growth_bytes_per_step=None,
                ),
                elapsed_s=time.monotonic() - begin,
            ),
            DEFAULT_CONFIDENCE,
        )
        self.step_s = max(self.step_s, measurement.median_s)
        return measurement

    def _timed(self, side: OpenConfiguration, until: float) -> Iterator[Seconds]:
        first = True
        while first or time.monotonic() < until:
            first = False
            yield from side.worker.ask(Run(num_calls=1, seed=0), Ran, timeout_s=self.open_s).times_s
