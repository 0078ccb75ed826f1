"""Watching the steps of a script for memory that stays, and deciding while its variables are still there.

At the script's end the variables of its functions are gone, and with them who holds what a leak has left. So the question is
asked again and again while steps run, ever more seldom, and at the end of epochs. The answer after most steps counts: at the
end it is still known what had gone before the last step was over, and what only the end itself let go.
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
from pyrometer.memory.profile import UNDECIDED_GROWTH, LeakReport
from pyrometer.memory.scripts.children import ChildGrowth, ChildLevels
from pyrometer.quantity import Seconds, counted, format_bytes

GROWING = ("leak", "growing cache", UNDECIDED_GROWTH)

MORE = 1.6
"""Steps from one answer to the next, as a factor."""

MORE_AT_PAUSE = 1.2
"""The same where a script may end."""

MAX_SHARE = 0.03
"""Of the time, for answers; those at pauses come seldom enough."""


class LeakWatch:
    """First every step is watched, `DEFAULT_STEPS` of them, then windows until the script ends; or `steps` and no more.

    Attributes:
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
        self.done = steps == 0
        self.missed = 0
        self._asked = steps
        self._device = device
        self._operators = operators
        self._clock = clock
        self._report: LeakReport | None = None
        self._children = ChildLevels()
        self._watch: MemoryWatch | None = None
        self._stack = contextlib.ExitStack()
        self._steps = self._answered = 0
        self._answered_s = self._cost_s = 0.0

    @property
    def report(self) -> LeakReport | None:
        """The answer so far."""
        return None if self._report is None else _with_children(self._report, self._children.growths)

    @property
    def on_top(self) -> bool:
        """Whether no dispatch mode of the script's is active; under one, ours cannot be entered or left."""
        top = top_dispatch_mode()
        return (top is None or type(top).__module__.startswith("pyrometer.")) and not in_transform()

    def start(self) -> None:
        """Steps begin. To be called `on_top` only."""
        watched = {} if self._asked is None else {"every": self._asked, "window": self._asked}
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
        self._children.read(self._steps)
        if self._steps == self._limit:
            self._answer(at_end=False)
            if self._asked is not None:
                self.leave()
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

    def _is_due(self, more: float) -> bool:
        """Whether there are enough new steps, and not about to be all of them."""
        enough = max(MIN_STEPS, more * self._answered)
        if self._watch is None or self._steps < enough:
            return False
        return self._steps > self._limit or self._steps * more <= self._limit

    @property
    def _is_affordable(self) -> bool:
        return self._cost_s <= MAX_SHARE * (self._clock() - self._answered_s) or self._answered == 0

    def _answer(self, *, at_end: bool) -> bool:
        assert self._watch is not None
        begin_s = self._clock()
        with torch.inference_mode(False), torch.enable_grad():  # whatever the script is in the midst of
            ended_growing = at_end and self._watch.grew_until_the_last_step()
            report = self._watch.report()
        self._answered, self._answered_s = self._steps, self._clock()
        self._cost_s = self._answered_s - begin_s
        if ended_growing and report.verdict not in GROWING:
            report = _gone(self._report, report)
        self._report = report if self._report is None else _better(self._report, report)
        return True


def _better(earlier: LeakReport, later: LeakReport) -> LeakReport:
    """The later answer, which is of more steps, unless it could not decide."""
    if later.verdict == "undecided":
        return earlier
    if earlier.verdict in GROWING and later.verdict not in GROWING:
        note = f"in the first {earlier.num_steps} steps memory grew: {earlier.sentence}"
        return msgspec.structs.replace(later, notes=[*later.notes, note])
    return later


def _gone(earlier: LeakReport | None, at_end: LeakReport) -> LeakReport:
    """What grew to the last step, and is gone with the script's variables: who held it is known from before."""
    steps = counted(at_end.num_steps, "step")
    if earlier is not None and earlier.verdict in GROWING:
        note = f"it grew in all of {steps}; who holds it was asked after {earlier.num_steps}, while the script's variables were there"
        return msgspec.structs.replace(earlier, num_steps=at_end.num_steps, notes=[*earlier.notes, note])
    sentence = (
        f"{UNDECIDED_GROWTH}: tensors stayed from step to step until all {steps} were over, and were let go when the script ended; "
        "who held them was not asked in time"
    )
    return msgspec.structs.replace(at_end, verdict=UNDECIDED_GROWTH, sentence=sentence)


def _with_children(report: LeakReport, growths: list[ChildGrowth]) -> LeakReport:
    """The answer with what is known of child processes, in which no tensor is seen."""
    if not growths:
        return report
    grown = [growth for growth in growths if growth.matters]
    if not grown or report.verdict in GROWING:
        highest = format_bytes(max(growths[0].nbytes, 0))
        note = (
            f"{counted(len(growths), 'child process')} watched by resident memory alone, which grew by at most {highest}: "
            "tensors there are not seen"
        )
        return msgspec.structs.replace(report, notes=[*report.notes, note])
    most = grown[0]
    sentence = (
        f"{UNDECIDED_GROWTH}: {most.name} grew by {format_bytes(most.nbytes)} over {counted(most.steps, 'step')}, while tensors of the "
        "script's own process do not grow; look at what the dataset keeps from item to item: tensors there are not seen"
    )
    rate = sum(growth.nbytes / max(growth.steps, 1) for growth in grown)
    return msgspec.structs.replace(report, verdict=UNDECIDED_GROWTH, sentence=sentence, bytes_per_step=rate)
