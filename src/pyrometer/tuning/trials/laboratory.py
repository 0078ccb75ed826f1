"""Opening configurations of one workload in workers, checking them against one reference, and timing them in turn."""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pyrometer.bench.comparison.conclusion import conclude
from pyrometer.bench.comparison.decision import DecisionRule
from pyrometer.bench.comparison.trial import Trial
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.worker import Asked, WorkerSide, worker
from pyrometer.errors import InputError
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.tuning.levers.choice import Configuration, key_of, label_of
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.tuning.trials import protocol
from pyrometer.tuning.trials.gate import Limits, Numerics, coarsest, judge

SCREENING = DecisionRule(confidence=0.95, looks=(8, 12, 20, 40, 80))
"""Of a lever against the best so far; what is reported is confirmed afterwards."""

SERVE = "pyrometer.tuning.trials.serving:serve"
SEED = 0
SLOWEST_CALL_S: Seconds = 30.0
SLOWER_AT_MOST = 20
"""A configuration whose steps take so many times as long as the baseline's, and half a minute more, hangs."""


@dataclass
class OpenConfiguration(contextlib.AbstractContextManager["OpenConfiguration"]):
    """A configuration that a worker holds open, until it is closed or left as a context.

    Attributes:
        elapsed_s: what opening it took, with the start of its process.
    """

    configuration: Configuration
    worker: Asked
    opened: protocol.Opened
    elapsed_s: Seconds
    stack: contextlib.ExitStack

    @property
    def price_s(self) -> Seconds:
        """To apply the levers and make the first call."""
        return sum(self.opened.apply_s) + self.opened.first_call_s

    def close(self) -> None:
        """End the worker."""
        self.stack.close()

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Laboratory:
    """One workload, in as many configurations as are asked for.

    Args:
        source: where workers get the workload from.
        folder: for references, artefacts, caches and logs.
        limits: of the numerics.
        metric: the user's own, as file.py:function.
        cwd: that the metric's path starts from.
        open_s: how long opening a configuration may take.

    Attributes:
        num_steps: that decide most comparisons.
        num_blocks: of steps in turns that a confirmation takes of each pair of processes.
        more_pairs: times as many pairs are confirmed by as the settings say, each for as much less time.
    """

    num_steps: ClassVar[int] = 60
    num_blocks: ClassVar[int] = 12
    more_pairs: ClassVar[int] = 1

    source: protocol.Source
    folder: Path
    limits: Limits
    metric: str | None = None
    cwd: str = "."
    open_s: Seconds = 600.0
    step_s: Seconds = 0.0
    _reference_metric: float | None = field(default=None, init=False)
    _files: dict[str, dict[str, list[str]]] = field(default_factory=dict, init=False)
    _opening: list[Asked] = field(default_factory=list, init=False)

    @property
    def _reference(self) -> Path:
        return self.folder / "reference.pt"

    @property
    def _call_s(self) -> Seconds:
        return SLOWEST_CALL_S + SLOWER_AT_MOST * self.step_s * 20

    def open(
        self, configuration: Configuration, *, fresh_seed: int | None = None, timeout_s: Seconds | None = None
    ) -> OpenConfiguration:
        """Start a worker with a configuration.

        Raises:
            PyrometerError: it cannot be opened, in the words of the worker.
        """
        key = key_of(configuration)
        room = self.folder / key
        room.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        with contextlib.ExitStack() as stack:
            child = self._started(stack, room, fresh_seed)
            request = protocol.Open(
                source=self.source,
                levers=list(configuration),
                folder=str(room),
                cache=str(room / "cache"),
                fresh_seed=fresh_seed,
                ready=self._files.get(key, {}),
            )
            self._opening.append(child)
            try:
                opened = child.ask(request, protocol.Opened, timeout_s=timeout_s or self.open_s)
            finally:
                self._opening.remove(child)
            self._files[key] = opened.artefacts
            return OpenConfiguration(configuration, child, opened, time.monotonic() - begin, stack.pop_all())

    def _started(self, stack: contextlib.ExitStack, room: Path, fresh_seed: int | None) -> Asked:
        """A worker that ends with the stack."""
        del fresh_seed
        return stack.enter_context(worker(room / "log.txt", SERVE))

    def abandon(self) -> None:
        """End what other threads are opening."""
        for child in list(self._opening):
            child.kill()

    def forget_trials(self) -> None:
        """Remove what trials wrote: caches, files of levers that were not kept, the reference."""
        for key in self._files:
            shutil.rmtree(self.folder / key, ignore_errors=True)
        self._reference.unlink(missing_ok=True)

    def files_of(self, configuration: Configuration) -> dict[str, list[str]]:
        """What the levers of a configuration wrote when it was opened last."""
        return self._files.get(key_of(configuration), {})

    def find_ready(self, configuration: Configuration, files: dict[str, list[Path]]) -> None:
        """Name what the levers of a configuration wrote elsewhere, for when it is opened."""
        self._files[key_of(configuration)] = {
            lever: [str(path) for path in paths] for lever, paths in files.items()
        }

    def survey(
        self, side: OpenConfiguration, levers: Sequence[str], *, timeout_s: Seconds | None = None
    ) -> protocol.Surveyed:
        """Ask which levers may be tried on top of an open configuration."""
        request = protocol.Survey(levers=list(levers))
        return side.worker.ask(request, protocol.Surveyed, timeout_s=timeout_s or self.open_s)

    def keep_reference(self, baseline: OpenConfiguration) -> None:
        """Write down what the baseline computes.

        Raises:
            InputError: the metric cannot tell a model that has learned nothing from this one.
        """
        baseline.worker.ask(
            protocol.Save(place=str(self._reference), seed=SEED), protocol.Done, timeout_s=self.open_s
        )
        if self.metric is not None:
            scored = self._score(baseline, also_blind=True)
            if scored.blind == scored.value:
                raise InputError(
                    f"metric: {self.metric} gives {scored.value:g} for the model and for zeros in place of its outputs; "
                    "it cannot tell right from wrong: compare outputs with labels in it"
                )
            self._reference_metric = scored.value

    def measure(self, side: OpenConfiguration, budget_s: Seconds) -> Measurement:
        """Time a configuration as `bench` does."""
        request = protocol.Time(budget_s=budget_s)
        measurement = side.worker.ask(request, Measurement, timeout_s=budget_s * 4 + self.open_s)
        self.step_s = max(self.step_s, measurement.median_s or 0.0)
        return measurement

    def check(self, side: OpenConfiguration, *, timeout_s: Seconds | None = None) -> Numerics:
        """Hold what a configuration computes against the baseline."""
        request = protocol.Check(place=str(self._reference))
        checked = side.worker.ask(request, protocol.Checked, timeout_s=timeout_s or self.open_s)
        fix_class = coarsest([find_lever(choice.lever).fix_class for choice in side.configuration])
        metrics = None
        if self._reference_metric is not None:
            metrics = (self._reference_metric, self._score(side).value)
        return judge(checked.cases, fix_class, self.limits, metrics)

    def _score(self, side: OpenConfiguration, *, also_blind: bool = False) -> protocol.Scored:
        assert self.metric is not None
        request = protocol.Score(metric=self.metric, cwd=self.cwd, also_blind=also_blind)
        return side.worker.ask(request, protocol.Scored, timeout_s=self.open_s)

    def peak_bytes(self, side: OpenConfiguration) -> Bytes:
        """The peak of memory since a configuration was opened."""
        return side.worker.ask(protocol.Peak(), protocol.PeakRead, timeout_s=self.open_s).peak_bytes

    def compare(
        self,
        best: OpenConfiguration,
        candidate: OpenConfiguration,
        budget_s: Seconds,
        rule: DecisionRule = SCREENING,
        *,
        seed: int = 0,
        gives_up: Ratio = math.inf,
    ) -> Verdict:
        """Run two configurations in turn, each in its process, until it is decided which is faster.

        One that is at more than `gives_up` at a look is not worth the time until it is decided.

        Raises:
            PyrometerError: one of them ended, or hangs.
            KeyboardInterrupt: also where some blocks had been run: they decide nothing.
        """
        names = _names(best.configuration, candidate.configuration)
        sides: list[WorkerSide] = [
            WorkerSide(side.worker, side.opened.clock, name, self._call_s)
            for side, name in zip((best, candidate), names, strict=True)
        ]
        trial = Trial(list(sides), rule, budget_s, seed, progress=None, gives_up=math.log(gives_up))
        trial.run()
        if trial.interrupted:
            raise KeyboardInterrupt
        return conclude(trial, 1)


def _names(best: Configuration, candidate: Configuration) -> tuple[str, str]:
    ours, theirs = label_of(best), label_of(candidate)
    return (ours, theirs) if ours != theirs else (f"A: {ours}", f"B: {theirs}")
