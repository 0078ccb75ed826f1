"""Running a session's steps and timing them: the only loop between the user's program and a clock."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.clock import Clock
from pyrometer.errors import UserProgramError
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import first_line
from pyrometer.workload.workload import Session

BLOCK_S = 0.02
MAX_BLOCK = 500
MAX_TIMER_SHARE = 0.01
MAX_STEPS_PER_SAMPLE = 1000


@contextlib.contextmanager
def paused_gc() -> Iterator[None]:
    """No garbage collection inside a timed block, so that no single sample pays for it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass
class Samples:
    """Step times as they come in, in seconds and in time order; the first call is kept apart."""

    first_call_s: Seconds = 0.0
    steps_per_sample: int = 1
    times: list[Seconds] = field(default_factory=list)
    host_times: list[Seconds] = field(default_factory=list)
    cpu_s: list[Seconds] = field(default_factory=list)

    @property
    def num_steps(self) -> int:
        """Steps that ran, the first call included."""
        return 1 + len(self.times) * self.steps_per_sample


class StepTimer:
    """Times the steps of one open session with one clock.

    Args:
        session: an open session; its steps are run.
        clock: the clock of the session's device.
        overhead_s: cost of timing one sample, subtracted from each.
    """

    def __init__(self, session: Session, clock: Clock, overhead_s: Seconds) -> None:
        self._session = session
        self._clock = clock
        self._overhead_s = overhead_s
        self.samples = Samples()
        self.output_shapes: set[tuple[Any, ...]] = set()
        self.nan_output = False

    def first_call(self) -> None:
        """Run and time the very first step, synchronised on both ends.

        Raises:
            UserProgramError: the step raised.
        """
        session, clock = self._session, self._clock
        try:
            prepared = session.prepare()
            session.activate()
            clock.synchronize()
            start = clock.host_ns()
            output = session.step(prepared)
            clock.synchronize()
        except Exception as error:
            raise step_failure(1, error) from error
        self.samples.first_call_s = (clock.host_ns() - start) * 1e-9
        self.nan_output = has_nan(output)
        self.output_shapes.add(shapes_of(output))

    def choose_batching(self) -> None:
        """Time so many steps per sample that the clock takes at most one per cent; call after some warm-up."""
        typical = (
            float(np.median(self.samples.times[-20:])) if self.samples.times else self.samples.first_call_s
        )
        wanted = self._overhead_s / max(typical * MAX_TIMER_SHARE, 1e-12)
        self.samples.steps_per_sample = int(np.clip(np.ceil(wanted), 1, MAX_STEPS_PER_SAMPLE))
        if self.samples.steps_per_sample > 1:
            self.samples.times.clear()

    def block(self) -> None:
        """Time about 20 ms of steps, then synchronise once."""
        typical = self.samples.times[-1] if self.samples.times else self.samples.first_call_s
        per_sample = max(typical * self.samples.steps_per_sample, 1e-9)
        self.run(int(np.clip(BLOCK_S / per_sample, 1, MAX_BLOCK)))

    def run(self, num_samples: int) -> None:
        """Time `num_samples` samples; those that are complete are kept when a step raises."""
        session, clock, batch = self._session, self._clock, self.samples.steps_per_sample
        prepare, step, mark, host_ns = session.prepare, session.step, clock.mark, clock.host_ns
        marks: list[tuple[Any, Any]] = []
        host: list[int] = []
        output: Any = None
        session.activate()
        cpu_start = clock.cpu_ns()
        try:
            with paused_gc():
                for _ in range(num_samples):
                    prepared = [prepare() for _ in range(batch)]
                    host_start = host_ns()
                    start = mark()
                    for arguments in prepared:
                        output = step(arguments)
                    end = mark()
                    host.append(host_ns() - host_start)
                    marks.append((start, end))
            clock.synchronize()
        except Exception as error:
            raise step_failure(self.samples.num_steps + len(marks) * batch + 1, error) from error
        finally:
            self._keep(marks, host, (clock.cpu_ns() - cpu_start) * 1e-9)
        self.output_shapes.add(shapes_of(output))

    def _keep(self, marks: list[tuple[Any, Any]], host: list[int], cpu_s: Seconds) -> None:
        batch, samples = self.samples.steps_per_sample, self.samples
        samples.times += [
            max((self._clock.between(start, end) - self._overhead_s) / batch, 1e-10) for start, end in marks
        ]
        samples.host_times += [elapsed * 1e-9 / batch for elapsed in host]
        if marks:
            samples.cpu_s.append(cpu_s / (len(marks) * batch))


def step_failure(number: int, error: Exception) -> UserProgramError:
    """What to say when the user's step raises."""
    return UserProgramError(f"step {number} raised {type(error).__name__}: {first_line(error)}")


def shapes_of(output: Any) -> tuple[Any, ...]:
    """The shapes of the tensors in a step's output."""
    return tuple(tuple(leaf.shape) for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor))


def has_nan(output: Any) -> bool:
    """Whether any floating-point tensor of a step's output holds a NaN."""
    leaves = [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]
    return any(bool(torch.isnan(leaf).any()) for leaf in leaves if leaf.is_floating_point())
