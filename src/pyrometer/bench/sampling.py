"""Running a session's steps and timing them: the only loop between the user's program and a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.clock import Clock
from pyrometer.errors import PyrometerError, UserProgramError
from pyrometer.garbage import uncollected
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import described
from pyrometer.workload.workload import Session

BLOCK_S = 0.02
MAX_BLOCK = 500
MAX_TIMER_SHARE = 0.01
MAX_STEPS_PER_SAMPLE = 1000


@dataclass
class Samples:
    """Step times as they come in, in seconds and in time order; the first call is kept apart."""

    first_call_s: Seconds = 0.0
    steps_per_sample: int = 1
    times: list[Seconds] = field(default_factory=list)
    single_times: list[Seconds] = field(default_factory=list)
    host_times: list[Seconds] = field(default_factory=list)
    cpu_s: list[Seconds] = field(default_factory=list)

    @property
    def num_steps(self) -> int:
        """Steps that ran, the first call included."""
        return 1 + len(self.single_times) + len(self.times) * self.steps_per_sample


@dataclass
class Marks:
    """Both ends of each sample; parallel lists, since a tuple per sample would keep the garbage collector busy."""

    starts: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    host_ns: list[int] = field(default_factory=list)


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
            session.activate()
            prepared = session.prepare()
            clock.synchronize()
            start = clock.host_ns()
            output = session.step(prepared)
            clock.synchronize()
        except PyrometerError:
            raise
        except (Exception, SystemExit) as error:
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
            self.samples.single_times += self.samples.times
            self.samples.times.clear()

    def block(self) -> None:
        """Time about 20 ms of steps, then synchronise once."""
        typical = self.samples.times[-1] if self.samples.times else self.samples.first_call_s
        per_sample = max(typical * self.samples.steps_per_sample, 1e-9)
        self.run(int(np.clip(BLOCK_S / per_sample, 1, MAX_BLOCK)))

    def run(self, num_samples: int) -> None:
        """Time `num_samples` samples; those that are complete are kept when a step raises."""
        marks = Marks()
        loop = self._single_steps if self.samples.steps_per_sample == 1 else self._step_batches
        self._session.activate()
        cpu_start = self._clock.cpu_ns()
        try:
            with uncollected():
                output = loop(num_samples, marks)
            self._clock.synchronize()
        except PyrometerError:
            raise
        except (Exception, SystemExit) as error:
            done = self.samples.num_steps + len(marks.ends) * self.samples.steps_per_sample
            raise step_failure(done + 1, error) from error
        except KeyboardInterrupt:
            self._clock.synchronize()  # or the events of the last samples could not be read
            raise
        finally:
            self._keep(marks, (self._clock.cpu_ns() - cpu_start) * 1e-9)
        self.output_shapes.add(shapes_of(output))

    def _single_steps(self, num_samples: int, marks: Marks) -> Any:
        """The loop that everything rests on: nothing but the step stands between two marks."""
        prepare, step = self._session.prepare, self._session.step
        mark, host_ns = self._clock.mark, self._clock.host_ns
        starts, ends, host = marks.starts.append, marks.ends.append, marks.host_ns.append
        output: Any = None
        for _ in range(num_samples):
            arguments = prepare()
            host_start = host_ns()
            start = mark()
            output = step(arguments)
            end = mark()
            host(host_ns() - host_start)
            starts(start)
            ends(end)
        return output

    def _step_batches(self, num_samples: int, marks: Marks) -> Any:
        """The same for steps so short that several make one sample."""
        prepare, step, mark, host_ns = (
            self._session.prepare,
            self._session.step,
            self._clock.mark,
            self._clock.host_ns,
        )
        output: Any = None
        for _ in range(num_samples):
            prepared = [prepare() for _ in range(self.samples.steps_per_sample)]
            host_start = host_ns()
            start = mark()
            for arguments in prepared:
                output = step(arguments)
            end = mark()
            marks.host_ns.append(host_ns() - host_start)
            marks.starts.append(start)
            marks.ends.append(end)
        return output

    def _keep(self, marks: Marks, cpu_s: Seconds) -> None:
        batch, samples, between = self.samples.steps_per_sample, self.samples, self._clock.between
        complete = len(marks.ends)
        samples.times += [
            max((between(start, end) - self._overhead_s) / batch, 1e-10)
            for start, end in zip(marks.starts[:complete], marks.ends, strict=True)
        ]
        samples.host_times += [elapsed * 1e-9 / batch for elapsed in marks.host_ns[:complete]]
        if complete:
            samples.cpu_s.append(cpu_s / (complete * batch))


def step_failure(number: int, error: BaseException) -> UserProgramError:
    """What to say when the user's step raises: what, and in which file and line."""
    return UserProgramError(f"step {number} raised {described(error)}")


def shapes_of(output: Any) -> tuple[Any, ...]:
    """The shapes of the tensors in a step's output."""
    return tuple(tuple(leaf.shape) for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor))


def has_nan(output: Any) -> bool:
    """Whether any floating-point tensor of a step's output holds a NaN."""
    leaves = [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]
    return any(bool(torch.isnan(leaf).any()) for leaf in leaves if leaf.is_floating_point())
