r"""The search for the largest batch: which size to run next, and when to stop.

Memory and latency are taken to be \\(a + c b\\) with \\(a, c ≥ 0\\) where nothing better is known. Through one measured size that
gives a line from the origin: below that size the truth lies above it, and beyond it below. So a larger size that the line
through the origin allows is safe; through two sizes the line itself is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from pyrometer.bench.clock import Clock
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.memory import ResidentMemory
from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.memory.prediction.fits import largest
from pyrometer.memory.prediction.growth import Growth, grow
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.prediction.settings import Settings
from pyrometer.quantity import Bytes, Seconds, format_bytes
from pyrometer.tuning.batching.largest_record import BatchTrial
from pyrometer.tuning.batching.trial import (
    OutOfMemory,
    host_available,
    run_for_latency,
    run_for_memory,
)
from pyrometer.workload.workload import Workload

CLOSE = 0.03
"""Once the next size is within this share of the best one, no more is tried."""

STEP_BACK = 0.8
"""After a size that did not run to its end, where nobody knows by how much it is too large."""


class Limits(NamedTuple):
    """What a batch must keep within."""

    memory_bytes: Bytes
    latency_s: Seconds | None
    most: int


class Search:
    """One search under way.

    Attributes:
        best: the largest batch that is known to fit; predicted to, where it could not be run; 0 for none.
        limited_by: why it is no larger.
        tried: what was run.
        notes: what could not be told.
    """

    def __init__(
        self,
        at: Callable[[int], Workload],
        limits: Limits,
        device: torch.device,
        present: int,
        *,
        trials: int,
        trial_s: Seconds,
        clock: Clock | None = None,
    ) -> None:
        self.limits = limits
        self.best = 0
        self.limited_by = "trials"
        self.tried: list[BatchTrial] = []
        self.notes: list[str] = []
        self._at, self._device, self._present = at, device, present
        self._trials, self._trial_s, self._clock = trials, trial_s, clock
        self._rehearsed: dict[int, Bytes] = {}
        self._overhead = 1.0  # resident memory over the tensors' peak, as far as it was seen
        self._growth = self._grown()

    def run(self) -> None:
        """Search."""
        ceiling = self._ceiling(self.limits.memory_bytes)
        if ceiling == 0:
            self.limited_by = "memory"
            return
        if self._trials == 0:
            self._take_predicted(ceiling)
            return
        too_large, reason = (ceiling or self.limits.most) + 1, "memory"
        if too_large > self.limits.most:
            reason = "nothing"
        batch: int | None = self._first(ceiling)
        for _ in range(self._trials):
            assert batch is not None
            trial = self._tried(batch)
            if trial.outcome == "fits":
                self.best = batch
            elif trial.outcome == "not run" and self.limits.latency_s is None:
                self.best = max(batch, self.best)  # predicted, and no more can be known here
                self.limited_by = "memory" if batch < self.limits.most else "nothing"
                return
            else:
                too_large, reason = batch, _limit(trial.outcome)
            batch, why = self._next(too_large, reason)
            if batch is None:
                self.limited_by = why
                return
        if self.best == 0:
            self.limited_by = reason

    def predicted(self, batch: int) -> Bytes | None:
        """The peak at a batch; `None` where it cannot be predicted."""
        growth = self._growth
        if growth is None:
            return None
        if growth.even:
            peak, reserved = growth.needs(batch)
            return peak if reserved is None else reserved
        if batch not in self._rehearsed:
            self._rehearsed[batch] = predict_memory(self._at(batch)).peak_bytes
        return self._rehearsed[batch]

    def _grown(self) -> Growth | None:
        try:
            return grow(self._at(self._present), Settings(), sequence=False)
        except UserProgramError:
            raise
        except PyrometerError as error:
            self.notes.append(f"memory was measured only, since it {error}".split("; pass fallback")[0])
            return None

    def _ceiling(self, limit: Bytes) -> int | None:
        """The largest batch that is predicted to keep within a memory limit; `None` where nothing can be predicted."""
        if self._growth is None:
            return None
        return largest(
            lambda batch: (self.predicted(batch) or 0) <= limit, self._present, most=self.limits.most
        )

    def _take_predicted(self, ceiling: int | None) -> None:
        if ceiling is None:
            raise InputError(f"trials: got 0, but {'; '.join(self.notes)}; give at least 2 trials")
        self.best = ceiling
        self.limited_by = "memory" if ceiling < self.limits.most else "nothing"

    def _first(self, ceiling: int | None) -> int:
        if ceiling is None:
            return self._present
        return ceiling if self.limits.latency_s is None else min(self._present, ceiling)

    def _next(self, too_large: int, reason: str) -> tuple[int | None, str]:
        """The size to run next, and what limits it; without one, why the search ends."""
        if too_large - self.best <= 1:
            return None, reason
        wanted, why = self._allowed(too_large, reason)
        if wanted <= self.best:
            return None, why
        if self.best and wanted <= self.best * (1 + CLOSE) and wanted < too_large - 1:
            return None, why
        if wanted >= too_large:
            # What was measured says that it fits, though it did not: halve what is left.
            return (self.best + too_large) // 2, reason
        return max(wanted, 1), why

    def _allowed(self, too_large: int, reason: str) -> tuple[int, str]:
        """The largest size that what is known allows, below one that is too large, and what limits it."""
        found = [(too_large - 1, reason)]
        memory = [(trial.batch, float(trial.measured_bytes)) for trial in self.tried if trial.measured_bytes]
        if self._growth is not None:
            found.append((self._corrected_ceiling(), "memory"))
        elif memory:
            found.append((_crossing(memory, float(self.limits.memory_bytes)), "memory"))
        times = [(trial.batch, trial.latency_high_s) for trial in self.tried if trial.latency_high_s]
        if self.limits.latency_s is not None and times:
            allowed = _crossing(times, self.limits.latency_s)
            if len(times) == 1 and self.best:
                allowed = max(allowed, 2 * self.best)  # one size does not tell how the latency grows
            found.append((allowed, "latency"))
        broken = [trial for trial in self.tried if trial.outcome not in _MEASURED]
        if broken:
            smallest = min(broken, key=lambda trial: trial.batch)
            halved = (self.best + smallest.batch) // 2
            found.append((max(int(smallest.batch * STEP_BACK), halved), _limit(smallest.outcome)))
        return min(found, key=lambda one: one[0])

    def _corrected_ceiling(self) -> int:
        """The predicted ceiling, with the prediction scaled to what was measured."""
        ratios = [
            trial.measured_bytes / trial.predicted_bytes
            for trial in self.tried
            if trial.measured_bytes and trial.predicted_bytes
        ]
        found = self._ceiling(int(self.limits.memory_bytes / max([1.0, *ratios])))
        assert found is not None
        return found

    def _tried(self, batch: int) -> BatchTrial:
        """Run one size."""
        predicted = self.predicted(batch)
        if self._device.type == "cpu" and not self._is_safe(batch, predicted):
            trial = BatchTrial(batch=batch, predicted_bytes=predicted, outcome="not run")
        else:
            trial = self._run(batch, predicted)
        self.tried.append(trial)
        return trial

    def _is_safe(self, batch: int, predicted: Bytes | None) -> bool:
        expected = predicted if predicted is not None else self._extrapolated(batch)
        available = host_available()
        if expected is None or expected * self._overhead <= available:
            return True
        self.notes.append(
            f"batch {batch} was not run: it needs about {format_bytes(expected * self._overhead)}, and {format_bytes(available)} "
            "are available"
        )
        return False

    def _extrapolated(self, batch: int) -> float | None:
        """What a size needs at most, from smaller ones."""
        measured = [trial for trial in self.tried if trial.measured_bytes]
        if not measured:
            return None
        largest_run = max(measured, key=lambda trial: trial.batch)
        return (largest_run.measured_bytes or 0) * max(batch / largest_run.batch, 1.0)

    def _run(self, batch: int, predicted: Bytes | None) -> BatchTrial:
        measured: Bytes | None = None
        latency: Measurement | None = None
        try:
            work = self._at(batch)
            measured = self._watched(work)
            outcome = "fits" if measured <= self.limits.memory_bytes else "too much memory"
            if outcome == "fits" and self.limits.latency_s is not None:
                latency = run_for_latency(work, budget_s=self._trial_s, clock=self._clock)
                outcome = "fits" if latency.ci_high_s <= self.limits.latency_s else "too slow"
        except OutOfMemory:
            outcome = "out of memory"
        except UserProgramError as error:
            if batch == self._present:
                raise
            outcome = f"failed: {error}"
        return BatchTrial(
            batch=batch,
            predicted_bytes=predicted,
            measured_bytes=measured,
            latency_s=latency.median_s if latency else None,
            latency_low_s=latency.ci_low_s if latency else None,
            latency_high_s=latency.ci_high_s if latency else None,
            outcome=outcome,
        )

    def _watched(self, work: Workload) -> Bytes:
        """The peak of a size; on the CPU the resident memory is watched, to know what it takes beside tensors."""
        if self._device.type != "cpu":
            return run_for_memory(work, self._device)
        meter = ResidentMemory()
        meter.reset_peak()
        start = meter.current()
        measured = run_for_memory(work, self._device)
        if measured > _NOISE:
            self._overhead = max(self._overhead, (meter.peak() - start) / measured)
        return measured


_MEASURED = {"fits", "too much memory", "too slow"}
"""Outcomes with figures, from which the next size follows."""

_NOISE = 256 << 20
"""Below, what the process takes beside tensors does not scale with them."""


def _crossing(points: list[tuple[int, float]], limit: float) -> int:
    """The largest size whose value is within a limit, on the line through the two points next to the limit.

    >>> _crossing([(10, 20.0)], 60.0), _crossing([(10, 20.0), (20, 25.0)], 60.0), _crossing([(8, 5.0), (16, 5.0)], 60.0)
    (30, 90, 16777216)
    """
    near = sorted(points, key=lambda point: abs(point[1] - limit))[:2]
    if len(near) == 1:
        ((size, value),) = near
        return max(int(size * limit / value), 0)
    (x0, y0), (x1, y1) = sorted(near)
    slope = (y1 - y0) / (x1 - x0)
    if slope <= 0:
        return _UNBOUNDED
    return max(min(int(x0 + (limit - y0) / slope), _UNBOUNDED), 0)


_UNBOUNDED = 2**24


def _limit(outcome: str) -> str:
    """What a size that did not fit was limited by."""
    if outcome == "too slow":
        return "latency"
    return "memory" if outcome in {"too much memory", "out of memory", "not run"} else "failure"
