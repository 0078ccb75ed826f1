"""Watching the steps of a script for memory that stays, and deciding while its variables are still there.

At the script's end the variables of its functions are gone, and with them what a leak has left. So the question is asked again
and again while steps run, ever more seldom, and at the end of epochs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import msgspec
import torch

from pyrometer.memory.leaks.cohorts import MIN_STEPS
from pyrometer.memory.leaks.watch import DEFAULT_STEPS, MemoryWatch
from pyrometer.memory.private.stacks import in_transform, top_dispatch_mode
from pyrometer.memory.profile import LeakReport
from pyrometer.quantity import Seconds

GROWING = ("leak", "growing cache")

MORE = 1.6
"""Steps from one answer to the next, as a factor."""

MORE_AT_PAUSE = 1.2
"""The same where a script may end."""

MAX_SHARE = 0.03
"""Of the time, for answers; those at pauses come seldom enough."""


class LeakWatch:
    """First every step is watched, `DEFAULT_STEPS` of them, then windows until the script ends; or `steps` and no more.

    Attributes:
        report: the answer so far.
        done: there is nothing more to watch.
        missed: steps that could not be told of, because a dispatch mode of the script's own was active when they ended.
    """

    def __init__(
        self,
        steps: int | None,
        device: torch.device,
        *,
        operators: bool,
        clock: Callable[[], Seconds] = time.perf_counter,
    ) -> None:
        self.report: LeakReport | None = None
        self.done = steps == 0
        self.missed = 0
        self._asked = steps
        self._device = device
        self._operators = operators
        self._clock = clock
        self._whole = True
        self._watch: MemoryWatch | None = None
        self._stack = contextlib.ExitStack()
        self._steps = self._answered = 0
        self._answered_s = self._cost_s = 0.0

    @property
    def on_top(self) -> bool:
        """Whether no dispatch mode of the script's is active; under one, ours cannot be entered or left."""
        top = top_dispatch_mode()
        return (top is None or type(top).__module__.startswith("pyrometer.")) and not in_transform()

    def start(self) -> None:
        """Steps begin. To be called `on_top` only."""
        watched = {"every": self._limit, "window": self._limit} if self._whole else {}
        self._watch = MemoryWatch(device=self._device, operators=self._operators, **watched)  # type: ignore[arg-type]
        self._stack.enter_context(self._watch)
        self._steps = self._answered = 0
        self._answered_s = self._clock()

    def step(self) -> bool:
        """A step is over; true if there is a new answer. To be called `on_top` only."""
        if self.done:
            return False
        if self._watch is None:
            self.start()
            return False
        self._watch.step()
        self._steps += 1
        if self._whole and self._steps >= self._limit:
            self._answer(at_end=False)
            self._next_stage()
            return True
        return self._is_due(MORE) and self._is_affordable and self._answer(at_end=False)

    def pause(self) -> bool:
        """An epoch is over, and perhaps the script; true if there is a new answer."""
        return self.on_top and self._is_due(MORE_AT_PAUSE) and self._answer(at_end=False)

    def leave(self) -> None:
        """Watch no longer."""
        self.done = True
        if self.on_top:
            self._stack.close()

    def finish(self) -> None:
        """The script ends."""
        if self._watch is not None and not self.done and self._steps > self._answered:
            self._answer(at_end=True)
        self.leave()

    @property
    def _limit(self) -> int:
        return DEFAULT_STEPS if self._asked is None else self._asked

    def _next_stage(self) -> None:
        self._stack.close()
        self._watch = None
        self._whole = False
        self.done = self._asked is not None
        if not self.done:
            self.start()

    def _is_due(self, more: float) -> bool:
        """Whether there are enough new steps, and not about to be all of them."""
        enough = max(MIN_STEPS, more * self._answered)
        if self._watch is None or self._steps < enough:
            return False
        return not self._whole or self._steps * more <= self._limit

    @property
    def _is_affordable(self) -> bool:
        return self._cost_s <= MAX_SHARE * (self._clock() - self._answered_s) or self._answered == 0

    def _answer(self, *, at_end: bool) -> bool:
        assert self._watch is not None
        begin_s = self._clock()
        with torch.inference_mode(False), torch.enable_grad():  # whatever the script is in the midst of
            report = self._watch.report()
        self._answered, self._answered_s = self._steps, self._clock()
        self._cost_s = self._answered_s - begin_s
        self.report = report if self.report is None else _better(self.report, report, at_end=at_end)
        return True


def _better(earlier: LeakReport, later: LeakReport, *, at_end: bool) -> LeakReport:
    """The later answer, unless it could not decide, or came when what it is about was gone."""
    if later.verdict == "undecided" or (at_end and later.verdict not in GROWING):
        return earlier
    if earlier.verdict in GROWING and later.verdict not in GROWING:
        note = f"in the first {earlier.num_steps} steps memory grew: {earlier.sentence}"
        return msgspec.structs.replace(later, notes=[*later.notes, note])
    return later
