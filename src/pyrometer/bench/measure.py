"""Measuring one workload: first call, warm-up, steady state, phases, memory, conditions."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from torch import nn

from pyrometer.bench.autocorrelation import effective_size
from pyrometer.bench.clock import Clock, clock_for, timer_overhead
from pyrometer.bench.dynamo import compile_seconds
from pyrometer.bench.genuine import doubts
from pyrometer.bench.measurement import Measurement, PhaseTime
from pyrometer.bench.memory import MemoryLog, meter_for
from pyrometer.bench.phasing import time_phases
from pyrometer.bench.quality import Circumstances
from pyrometer.bench.quantiles import estimate_quantile
from pyrometer.bench.sampling import StepTimer, step_failure
from pyrometer.bench.stage import Progress, Stage
from pyrometer.bench.summary import Observation, summarise
from pyrometer.bench.warmup import steady_start
from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.quantity import Seconds
from pyrometer.workload.given import workload_of
from pyrometer.workload.workload import Session, Workload

"""Called with the share of the budget that is used, and what is being done."""

DEFAULT_BUDGET_S = 5.0
DEFAULT_CONFIDENCE = 0.99
PRECISE_ENOUGH = 0.005
ENOUGH_SAMPLES = 1000
MAX_SAMPLES = 200_000
PHASE_SHARE = 0.2
NUM_LATENCIES = 20
DOUBT_SHARE = 10
"""Steps that must fit into the budget before a few more are run to see whether they do their work."""


def measure(
    work: Workload | nn.Module,
    *inputs: Any,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    confidence: float = DEFAULT_CONFIDENCE,
    phases: bool = True,
    beyond_first_call: bool = False,
    clock: Clock | None = None,
    circumstances: Circumstances | None = None,
    progress: Progress | None = None,
    **keywords: Any,
) -> Measurement:
    """Measure a workload, or a model's forward pass, within a time budget.

    The first call, the warm-up and the steady state are kept apart. Sampling ends early when the median is known to
    half a per cent from a thousand effective samples. Ctrl-C, or a failure after the first step, ends it too; what was
    measured is returned and says so.

    Args:
        work: what to measure; its state is restored. A model is measured as `Inference(model, inputs)`.
        inputs: of a model, as its arguments; a single one in any form that `Inference` takes.
        budget_s: no new step is begun after so many seconds.
        confidence: coverage of the intervals.
        phases: whether to spend a fifth of the budget on the split into phases.
        beyond_first_call: let the budget begin after the first call, so that compilation does not use it up.
        clock: by default the right one for the workload's device.
        circumstances: what the user typed, for the hints.
        progress: told how far it is, between blocks.
        keywords: of a model, its inputs by keyword.

    Raises:
        InputError: the workload cannot be prepared, inputs do not fit, or the budget is not positive.
        UserProgramError: the very first step raised.

    >>> import pyrometer as pm, torch
    >>> m = pm.measure(torch.nn.Linear(8, 2), torch.randn(4, 8), budget_s=0.2)
    >>> m.ci_low_s <= m.median_s <= m.ci_high_s
    True
    """
    work = workload_of(work, inputs, keywords)
    if not budget_s > 0:
        raise InputError(f"budget: got {budget_s} s; it must be positive, for example 5 s")
    asked = circumstances or Circumstances(budget_s=budget_s)
    with work.open() as session, ConditionsProbe() as probe:
        clock = clock or clock_for(session.device)
        run = _Run(session, clock, budget_s, confidence, progress or _silent, beyond_first_call)
        run.go(work.phases() if phases else ())
    seen = run.seen
    seen.name, seen.config, seen.unit = work.name, work.config.label, work.unit
    seen.deadline_s = getattr(work, "deadline_s", None)
    seen.units_per_step = session.units_per_step
    seen.padding_ratio = session.padding_ratio
    seen.conditions = probe.conditions
    if seen.memory is not None:
        seen.memory = msgspec.structs.replace(seen.memory, held_bytes=work.snapshot_bytes())
    seen.circumstances = asked
    return summarise(seen, confidence)


def _silent(_share: float, _what: str) -> None:
    """The progress of someone who does not ask."""


@dataclass
class _Run:
    """One measurement under way: owns the timer, the logs and the budget."""

    session: Session
    clock: Clock
    budget_s: Seconds
    confidence: float
    progress: Progress
    beyond_first_call: bool = False
    seen: Observation = field(default_factory=lambda: Observation(name=""))
    _compiled: list[tuple[int, Seconds]] = field(default_factory=list)

    def go(self, phases: tuple[str, ...]) -> None:
        """Run everything; interruptions and failures after the first step are noted, not raised."""
        gc.collect()
        overhead_s = timer_overhead(self.clock)
        self.timer = StepTimer(self.session, self.clock, overhead_s)
        self.memory = MemoryLog(meter_for(self.session.device))
        self._started_ns = self.clock.host_ns()
        compiled_before = compile_seconds()
        self.progress(0.0, "first call")
        self.timer.first_call()
        if self.beyond_first_call:
            self.budget_s += self.elapsed_s
        # A first call that compiled says nothing about how long a step takes.
        self._first_step_s = 0.0 if compile_seconds() != compiled_before else self.timer.samples.first_call_s
        try:
            self._sample(self.budget_s * (1 - PHASE_SHARE if len(phases) > 1 else 1))
            self._latencies()
            self.seen.phases = self._phases(phases)
            self._doubt()
        except KeyboardInterrupt:
            self.seen.interrupted = True
        except UserProgramError as error:
            self.seen.failure = str(error)
        self._note(overhead_s, compiled_before)

    @property
    def elapsed_s(self) -> Seconds:
        """Time since the first call began."""
        return (self.clock.host_ns() - self._started_ns) * 1e-9

    def _sample(self, budget_s: Seconds) -> None:
        samples = self.timer.samples
        next_check = 200
        while self._affordable(budget_s):
            self.timer.block()
            if len(samples.times) >= 5 and samples.steps_per_sample == 1 and samples.num_steps < 3000:
                self.timer.choose_batching()
            self.memory.read(samples.num_steps)
            self._compiled.append((samples.num_steps, compile_seconds() or 0.0))
            last_s = samples.times[-1] if samples.times else samples.single_times[-1]
            stage = Stage("measuring", num_samples=len(samples.times), step_s=last_s)
            self.progress(self.elapsed_s / self.budget_s, stage)
            if len(samples.times) >= MAX_SAMPLES:
                break
            if len(samples.times) >= next_check:
                next_check = len(samples.times) * 2
                if self._precise():
                    break

    def _affordable(self, budget_s: Seconds) -> bool:
        """Whether another step fits; a step as long as the last may end after the budget by half of itself."""
        times = self.timer.samples.times
        step_s = times[-1] * self.timer.samples.steps_per_sample if times else self._first_step_s / 2
        return self.elapsed_s + step_s / 2 <= budget_s

    def _precise(self) -> bool:
        times = np.asarray(self.timer.samples.times)
        start = steady_start(times)
        if start is None or effective_size(times[start:]) < ENOUGH_SAMPLES:
            return False
        median = estimate_quantile(times[start:], 0.5, self.confidence)
        tail = estimate_quantile(times[start:], 0.99, self.confidence)
        if median.low_s is None or median.high_s is None or tail.high_s is None:
            return False
        return (median.high_s - median.low_s) / 2 <= PRECISE_ENOUGH * median.value_s

    def _latencies(self) -> None:
        """On a device: single steps with a synchronisation each, what one request alone would wait."""
        if self.clock.name == "wall":
            return
        waits: list[Seconds] = []
        while len(waits) < NUM_LATENCIES and self._affordable(self.budget_s):
            try:
                prepared = self.session.prepare()
                self.clock.synchronize()
                start = self.clock.host_ns()
                self.session.step(prepared)
                self.clock.synchronize()
            except PyrometerError:
                raise
            except (Exception, SystemExit) as error:
                raise step_failure(self.timer.samples.num_steps + len(waits) + 1, error) from error
            waits.append((self.clock.host_ns() - start) * 1e-9)
        if waits:
            self.seen.latency_s = float(np.median(waits))

    def _phases(self, names: tuple[str, ...]) -> list[PhaseTime]:
        if len(names) < 2 or not self._affordable(self.budget_s):
            return []
        self.progress(self.elapsed_s / self.budget_s, "phases")
        return time_phases(self.session, self.clock, self.budget_s - self.elapsed_s, names)

    def _doubt(self) -> None:
        """Whether the time of a step is that of its work."""
        times = self.timer.samples.times
        if not times or min(times) * DOUBT_SHARE > self.budget_s:
            return
        try:
            found, _ = doubts(self.session, self.clock, min(times), self.timer.samples.first_call_s)
        except PyrometerError:
            raise
        except (Exception, SystemExit) as error:
            raise step_failure(self.timer.samples.num_steps + 1, error) from error
        self.seen.doubts = found

    def _note(self, overhead_s: Seconds, compiled_before: Seconds | None) -> None:
        samples, seen = self.timer.samples, self.seen
        seen.clock = self.clock.name
        seen.first_call_s = samples.first_call_s
        seen.times_s = samples.times
        seen.single_times_s = samples.single_times
        seen.steps_per_sample = samples.steps_per_sample
        seen.timer_overhead_s = overhead_s
        seen.cpu_s = float(np.median(samples.cpu_s)) if samples.cpu_s else None
        if self.clock.name != "wall" and samples.host_times:
            seen.host_s = float(np.median(samples.host_times))
        seen.nan_output = self.timer.nan_output
        seen.num_output_shapes = len(self.timer.output_shapes)
        start = steady_start(np.asarray(samples.times)) or 0
        steps_before = 1 + len(samples.single_times) + start * samples.steps_per_sample
        seen.memory = self.memory.summary(steady_from=steps_before)
        seen.elapsed_s = self.elapsed_s
        compiled = compile_seconds()
        if compiled is not None and compiled_before is not None and compiled > compiled_before:
            seen.compile_s = compiled - compiled_before
        while_steady = [total_s for step, total_s in self._compiled if step > steps_before]
        if while_steady:
            seen.compile_after_warmup_s = while_steady[-1] - while_steady[0]
