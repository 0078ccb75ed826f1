"""Long-run stability: latency and memory window by window, and whether they drift.

Only the current window's samples are held, and of them at most 4,096, so that a day takes no more memory than a minute.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import msgspec
import numpy as np

from pyrometer.bench.clock import Clock, clock_for, timer_overhead
from pyrometer.bench.machine import machine_caveats
from pyrometer.bench.memory import meter_for
from pyrometer.bench.quality import Caveat, CaveatCode, caveat
from pyrometer.bench.record import Soak, Window
from pyrometer.bench.sampling import StepTimer
from pyrometer.bench.stability import CONFIDENCE, FEWEST_WINDOWS, byte_drift, share_drift
from pyrometer.bench.stage import Progress, Stage
from pyrometer.bench.warmup import steady_start
from pyrometer.errors import InputError, UserProgramError
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.record import Conditions
from pyrometer.quantity import Seconds, format_bytes, format_percent, format_seconds
from pyrometer.workload.workload import Session, Workload

MAX_WINDOWS = 120
SHORTEST_WINDOW_S = 0.25
WARMUP_SHARE = 0.1
MAX_KEPT = 4096


def soak(
    work: Workload, duration_s: Seconds, *, clock: Clock | None = None, progress: Progress | None = None
) -> Soak:
    """Run a workload for a long time and watch latency and memory. Ctrl-C, or a failing step, keeps what was measured.

    Args:
        work: what to run; its state is restored.
        duration_s: how long, after a warm-up of at most a tenth of it.
        clock: by default the right one for the workload's device.
        progress: told how far it is, between blocks of steps.

    Raises:
        InputError: the duration is not positive, or the workload cannot be prepared.
        UserProgramError: a step raised before the first window was complete.
        KeyboardInterrupt: likewise.
    """
    if not duration_s > 0:
        raise InputError(f"soak: got {duration_s} s; it must be positive, for example 30m")
    with work.open() as session, ConditionsProbe() as probe:
        run = _Run(session, clock or clock_for(session.device), duration_s, progress or _silent)
        run.go()
    return run.result(probe.conditions)


def _silent(_share: float, _what: str) -> None:
    """The progress of someone who does not ask."""


class Reservoir:
    """An even draw of at most `size` values from a stream of any length (Vitter's algorithm R, 1985).

    >>> reservoir = Reservoir(3)
    >>> reservoir.add([1.0, 2.0])
    >>> reservoir.values, reservoir.seen
    ([1.0, 2.0], 2)
    """

    def __init__(self, size: int) -> None:
        self.values: list[float] = []
        self.seen = 0
        self._size = size
        self._random = random.Random(0)  # noqa: S311 - which samples to keep is no secret

    def add(self, values: list[float]) -> None:
        """Offer values."""
        for value in values:
            self.seen += 1
            if len(self.values) < self._size:
                self.values.append(value)
            elif (place := self._random.randrange(self.seen)) < self._size:
                self.values[place] = value


@dataclass
class _Run:
    """One long run under way."""

    session: Session
    clock: Clock
    duration_s: Seconds
    progress: Progress
    windows: list[Window] = field(default_factory=list)
    num_steps: int = 0
    interrupted: bool = False
    failure: str | None = None

    def go(self) -> None:
        """Warm up, then fill windows until the time is over."""
        self._timer = StepTimer(self.session, self.clock, timer_overhead(self.clock))
        self._meter = meter_for(self.session.device)
        try:
            self._warm_up()
            self._started_ns = self.clock.host_ns()
            wanted = min(max(int(self.duration_s / SHORTEST_WINDOW_S), 1), MAX_WINDOWS)
            for number in range(1, wanted + 1):
                if self._elapsed_s < self.duration_s:
                    self._window(self.duration_s * number / wanted)
        except KeyboardInterrupt:
            if not self.windows:
                raise
            self.interrupted = True
        except UserProgramError as error:
            if not self.windows:
                raise
            self.failure = str(error)

    @property
    def _elapsed_s(self) -> Seconds:
        return (self.clock.host_ns() - self._started_ns) * 1e-9

    def _warm_up(self) -> None:
        self.progress(0.0, "warming up")
        self._timer.first_call()
        self.num_steps = 1
        times: list[Seconds] = []
        deadline_ns = self.clock.host_ns() + int(self.duration_s * WARMUP_SHARE * 1e9)
        while not times or (steady_start(np.asarray(times)) is None and self.clock.host_ns() < deadline_ns):
            times += self._block()
        self._timer.choose_batching()

    def _block(self) -> list[Seconds]:
        """Run a block and take its samples out of the timer, but for the last, which tells how long the next may be."""
        samples = self._timer.samples
        num_old = len(samples.times)
        self._timer.block()
        fresh = samples.times[num_old:]
        for series in (samples.times, samples.host_times, samples.cpu_s):
            del series[:-1]
        self.num_steps += len(fresh) * samples.steps_per_sample
        return fresh

    def _window(self, end_s: Seconds) -> None:
        reservoir, start_s = Reservoir(MAX_KEPT), self._elapsed_s
        while not reservoir.seen or self._elapsed_s < end_s:
            reservoir.add(self._block())
            last_s = self._timer.samples.times[-1]
            stage = Stage(f"window {len(self.windows) + 1}", num_samples=self.num_steps, step_s=last_s)
            self.progress(self._elapsed_s / self.duration_s, stage)
        p50_s, p99_s = np.quantile(reservoir.values, [0.5, 0.99]).tolist()
        window = Window(
            start_s=start_s,
            end_s=self._elapsed_s,
            num_samples=reservoir.seen,
            p50_s=p50_s,
            p99_s=p99_s,
            memory_bytes=self._meter.current(),
        )
        self.windows.append(window)

    def result(self, conditions: Conditions | None) -> Soak:
        """What the windows say."""
        windows = self.windows
        middles = np.array([(window.start_s + window.end_s) / 2 for window in windows])
        soaked = Soak(
            asked_s=self.duration_s,
            confidence=CONFIDENCE,
            elapsed_s=windows[-1].end_s,
            num_steps=self.num_steps,
            steps_per_sample=self._timer.samples.steps_per_sample,
            windows=windows,
            latency=share_drift(middles, np.array([window.p50_s for window in windows])),
            tail=share_drift(middles, np.array([window.p99_s for window in windows])),
            memory=byte_drift(middles, np.array([float(window.memory_bytes) for window in windows])),
            memory_source=self._meter.source,
            interrupted=self.interrupted,
            failure=self.failure,
        )
        return msgspec.structs.replace(soaked, caveats=[*_caveats(soaked), *machine_caveats(conditions)])


def _caveats(run: Soak) -> list[Caveat]:
    caveats: list[Caveat] = []
    ran, asked = format_seconds(run.elapsed_s), format_seconds(run.asked_s)
    if run.failure is not None:
        caveats.append(
            caveat(CaveatCode.FAILED, f"after {ran}: {run.failure}", "mend the program, then run it again")
        )
    if run.interrupted:
        caveats.append(
            caveat(
                CaveatCode.INTERRUPTED,
                f"interrupted after {ran} of {asked}",
                "let it run to the end for narrower intervals",
            )
        )
    if len(run.windows) < FEWEST_WINDOWS:
        message = f"{len(run.windows)} windows are too few for a slope; {FEWEST_WINDOWS} are needed"
        caveats.append(caveat(CaveatCode.FEW_SAMPLES, message, "run longer"))
    if run.latency is not None and run.latency.trend in {"rising", "falling"}:
        word = "slower" if run.latency.trend == "rising" else "faster"
        message = f"the steps grew {format_percent(abs(run.latency.change))} {word} in {ran}"
        hint = "the machine may have changed instead: look at its temperature and load, and run once more"
        caveats.append(caveat(CaveatCode.DRIFTING, message, hint))
    if run.memory is not None and run.memory.trend == "rising":
        message = f"memory grew by {format_bytes(run.memory.change)} in {ran}"
        hint = "look for outputs, losses or tensors that are kept in a list"
        caveats.append(caveat(CaveatCode.MEMORY_GROWS, message, hint))
    return caveats
