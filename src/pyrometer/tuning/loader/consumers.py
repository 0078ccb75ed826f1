"""What takes the batches while settings are tried: the training itself, a step of known length, or nothing at all."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Protocol

from pyrometer.bench.clock import clock_for
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import user_code
from pyrometer.workload.state import preserved_rng
from pyrometer.workload.training import Training, TrainingSession


class Consumer(Protocol):
    """Takes batches and does something in between."""

    waits_for_device: bool
    """Whether the time to get a batch hides what the device still computes."""

    def step(self, batches: Iterator[Any]) -> None:
        """Take the batches of one step, and do the step."""

    def finish(self) -> None:
        """Wait until everything is done that was begun."""


class Idle:
    """Takes batches as fast as they come, or with a pause like an accelerator's step in between."""

    waits_for_device = False

    def __init__(self, step_s: Seconds = 0.0) -> None:
        self._step_s = step_s

    def step(self, batches: Iterator[Any]) -> None:
        """One batch, then the pause."""
        next(batches)
        if self._step_s:
            time.sleep(self._step_s)

    def finish(self) -> None:
        """Nothing is under way."""


class Feed:
    """Batches for a session, from whatever loader is being tried."""

    def __init__(self) -> None:
        self.source: Iterator[Any] = iter(())

    def __iter__(self) -> Feed:
        return self

    def __next__(self) -> Any:
        return next(self.source)


class Trainer:
    """A training's own steps."""

    def __init__(self, session: TrainingSession, feed: Feed) -> None:
        self._session = session
        self._feed = feed
        self._clock = clock_for(session.device)
        self.waits_for_device = session.device.type != "cpu"

    def step(self, batches: Iterator[Any]) -> None:
        """One optimizer step."""
        self._feed.source = batches
        with user_code("a training step"):
            self._session.prepare()
            self._session.step()

    def finish(self) -> None:
        """Wait for the device."""
        self._clock.synchronize()


@contextlib.contextmanager
def open_consumer(step_s: Seconds | None, work: Training | None) -> Iterator[Consumer]:
    """The consumer that was asked for; the training and all random state are restored at the end.

    Raises:
        InputError: both a step time and a training were given, or the time is negative.
    """
    if step_s is not None and work is not None:
        raise InputError("step_s and work: give one of them; the training is measured by itself")
    if step_s is not None and not step_s >= 0:
        raise InputError(f"step_s: got {step_s}; it is the time of a step without its data, in seconds")
    if work is None:
        with preserved_rng():
            yield Idle(step_s or 0.0)
        return
    feed = Feed()
    own = work.variant()
    own.batches = feed
    with own.open() as session:
        session.activate()
        yield Trainer(session, feed)
