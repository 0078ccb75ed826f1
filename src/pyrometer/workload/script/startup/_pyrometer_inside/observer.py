"""Turns what the hooks see into events of one thread."""

from __future__ import annotations

import gc
from _thread import get_ident
from time import perf_counter_ns

from . import kinds
from .device_time import device_time
from .log import EventLog
from .memory import MemorySampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Follower(Protocol):
        """Told of what begins and ends in the observed thread; nothing that fails in it reaches the script."""

        def begin(self, kind: int, value: int, subject: Any) -> None:
            """Something of this kind begins, on this object."""

        def end(self, kind: int, value: int, subject: Any) -> None:
            """Something of this kind has ended."""

        def finish(self) -> None:
            """The script ends."""

        def detach(self) -> None:
            """This is a forked child, in which there is nothing to follow."""


_SHIFT = kinds.VALUE_SHIFT
_EVALUATION = kinds.EVALUATION << kinds.KIND_BITS
_FIRST_FETCH = kinds.FIRST_FETCH << kinds.KIND_BITS
_EXHAUSTED = kinds.EXHAUSTED << kinds.KIND_BITS
_FORWARD_BEGIN, _DATA_BEGIN, _DATA_END = kinds.FORWARD_BEGIN, kinds.DATA_BEGIN, kinds.DATA_END


CALLS_TO_MOVE = 3
"""Of modules by one other thread before the observed one did anything: it steps, as the worker of a server does."""


class Observer:
    """Logs the phases of one thread, by default the one that it is made in; calls on other threads are counted.

    Where another thread calls modules and this one does not, the other is observed from then on.

    Data wait, forward and backward do not nest: the outermost counts, and while it lasts `inside` is true, which is
    all that a nested call looks at. The optimizer may contain them, as a closure does.

    What is called here is called a few times in a step, when the step's own work has taken the caches: each further
    Python function costs what it takes to fetch it from memory. So `begin` and `end` do what `EventLog.add` does themselves.
    """

    __slots__ = (
        "_collecting_ns",
        "_device",
        "_follower",
        "_is_compiling",
        "_is_grad_enabled",
        "_log",
        "_may_move",
        "_memory",
        "_others",
        "_thread",
        "elsewhere",
        "exhausted",
        "inside",
    )

    def __init__(
        self, log: EventLog, torch: Any, thread: int | None = None, follower: Follower | None = None
    ) -> None:
        self.inside = False
        self.exhausted = False
        self.elsewhere = 0
        self._log = log
        self._thread = get_ident() if thread is None else thread
        self._may_move = True
        self._others: dict[int, int] = {}
        self._is_compiling: Callable[[], bool] = torch.compiler.is_compiling
        self._is_grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        self._memory = MemorySampler(log, torch)
        self._device = device_time(log, torch)
        self._follower = follower
        self._collecting_ns = 0

    def begin(self, kind: int, subject: Any) -> bool:
        """The outermost call of a phase begins; false on another thread, where `end` must not follow.

        Args:
            kind: `FORWARD_BEGIN`, `BACKWARD_BEGIN` or `DATA_BEGIN`.
            subject: the module, the roots, or the iterator that is asked for the next batch.
        """
        thread = get_ident()
        if thread != self._thread and not self._moves_to(thread, kind):
            self.elsewhere += 1
            return False
        self._may_move = False
        event_word = kind
        if kind == _FORWARD_BEGIN:
            event_word |= id(subject) << _SHIFT
            # A module whose author forgot super().__init__() lacks it, and must fail where it fails without us.
            if not (getattr(subject, "training", True) and self._is_grad_enabled()):
                event_word |= _EVALUATION
        elif kind == _DATA_BEGIN:
            # The dataset stands for the loader, whose iterators come and go.
            event_word |= id(getattr(subject, "_dataset", None)) << _SHIFT
            self.exhausted = False
            if getattr(subject, "_num_yielded", None) == 0:
                event_word |= _FIRST_FETCH
                self._log_batch_size(subject)
        self.inside = True
        log = self._log
        words, place = log.words, log.next_word
        time_ns = perf_counter_ns()
        try:
            words[place] = time_ns
            words[place + 1] = event_word
            log.next_word = place + 2
        except IndexError:
            log.add_at(time_ns, event_word)
        if self._device is not None:
            self._device.boundary(kind, time_ns)
        if self._follower is not None:
            self._follower.begin(kind, event_word >> _SHIFT, subject)
        return True

    def end(self, kind: int) -> None:
        """The call that began has returned or raised; the batch is there, or there is none."""
        event_word = kind
        if self.exhausted and kind == _DATA_END:
            event_word |= _EXHAUSTED
        if self._follower is not None:
            self._follower.end(kind, event_word >> kinds.KIND_BITS, None)
        log = self._log
        words, place = log.words, log.next_word
        time_ns = perf_counter_ns()
        try:
            words[place] = time_ns
            words[place + 1] = event_word
            log.next_word = place + 2
        except IndexError:
            log.add_at(time_ns, event_word)
        self.inside = False
        if time_ns >= self._memory.next_ns:
            self._memory.sample(time_ns)
        if self._device is not None:
            self._device.boundary(kind, time_ns)

    def begin_optimizer(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """An optimizer's step begins."""
        if not self._is_compiling() and get_ident() == self._thread:
            self._may_move = False
            self._log.add(kinds.OPTIMIZER_BEGIN | id(optimizer) << _SHIFT)
            if self._follower is not None:
                self._follower.begin(kinds.OPTIMIZER_BEGIN, id(optimizer), optimizer)

    def end_optimizer(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """An optimizer's step has returned."""
        if not self._is_compiling() and get_ident() == self._thread:
            time_ns = self._log.add(kinds.OPTIMIZER_END | id(optimizer) << _SHIFT)
            if time_ns >= self._memory.next_ns:
                self._memory.sample(time_ns)
            if self._device is not None:
                self._device.boundary(kinds.OPTIMIZER_END, time_ns)
            if self._follower is not None:
                self._follower.end(kinds.OPTIMIZER_END, id(optimizer), optimizer)

    def collected(self, phase: str, _info: dict[str, int]) -> None:
        """Python begins to collect garbage, or has ended."""
        if phase == "start":
            self._collecting_ns = perf_counter_ns()
        else:
            self._log.add(kinds.word(kinds.COLLECTED, perf_counter_ns() - self._collecting_ns))

    def watch_garbage(self, on: bool) -> None:
        """Be told of Python's collections, or no longer."""
        if on:
            gc.callbacks.append(self.collected)
        elif self.collected in gc.callbacks:
            gc.callbacks.remove(self.collected)

    def detach(self) -> None:
        """See nothing from now on, at the least cost: in a forked child."""
        self._thread = -1
        self._may_move = False
        self.inside = True
        self.watch_garbage(False)
        if self._follower is not None:
            self._follower.detach()

    def resolve(self) -> None:
        """Finish what follows, and log the device times that are known by now."""
        self.watch_garbage(False)
        if self._follower is not None:
            self._follower.finish()
        if self._device is not None:
            self._device.resolve()

    def _log_batch_size(self, iterator: Any) -> None:
        size = getattr(getattr(iterator, "_index_sampler", None), "batch_size", None)
        if isinstance(size, int):
            self._log.add(kinds.word(kinds.BATCH_SIZE, size))

    def _moves_to(self, thread: int, kind: int) -> bool:
        """Whether this thread is the one to observe from now on."""
        if not self._may_move or kind != kinds.FORWARD_BEGIN:
            return False
        calls = self._others[thread] = self._others.get(thread, 0) + 1
        if calls < CALLS_TO_MOVE:
            return False
        self._thread = thread
        self._log.add(kinds.word(kinds.MOVED))
        return True
