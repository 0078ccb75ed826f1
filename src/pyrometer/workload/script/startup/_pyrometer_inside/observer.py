"""Turns what the hooks see into events of one thread."""

from __future__ import annotations

from _thread import get_ident

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


CALLS_TO_MOVE = 3
"""Of modules by one other thread before the observed one did anything: it steps, as the worker of a server does."""


class Observer:
    """Logs the phases of one thread, by default the one that it is made in; calls on other threads are counted.

    Where another thread calls modules and this one does not, the other is observed from then on.

    Data wait, forward and backward do not nest: the outermost counts, and while it lasts `inside` is true, which is
    all that a nested call looks at. The optimizer may contain them, as a closure does.
    """

    __slots__ = (
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

    def begin_forward(self, module: Any) -> bool:
        """The outermost module call begins; false on another thread, where `end_…` must not follow."""
        # A module whose author forgot super().__init__() lacks it, and must fail where it fails without us.
        training = getattr(module, "training", True) and self._is_grad_enabled()
        flags = 0 if training else _EVALUATION
        return self._begin(kinds.FORWARD_BEGIN | flags | id(module) << _SHIFT, module)

    def begin_backward(self, roots: Any) -> bool:
        """The autograd engine starts."""
        return self._begin(kinds.BACKWARD_BEGIN, roots)

    def begin_data(self, iterator: Any) -> bool:
        """The next batch is asked for; the dataset stands for the loader, whose iterators come and go."""
        self.exhausted = False
        flags = _FIRST_FETCH if getattr(iterator, "_num_yielded", None) == 0 else 0
        if flags and get_ident() == self._thread:
            size = getattr(getattr(iterator, "_index_sampler", None), "batch_size", None)
            if isinstance(size, int):
                self._log.add(kinds.word(kinds.BATCH_SIZE, size))
        return self._begin(
            kinds.DATA_BEGIN | flags | id(getattr(iterator, "_dataset", None)) << _SHIFT, iterator
        )

    def end_forward(self) -> None:
        """The outermost module call has returned or raised."""
        self._end(kinds.FORWARD_END)

    def end_backward(self) -> None:
        """The autograd engine has returned or raised."""
        self._end(kinds.BACKWARD_END)

    def end_data(self) -> None:
        """The batch is there, or there is none."""
        self._end(kinds.DATA_END | (_EXHAUSTED if self.exhausted else 0))

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
            self._memory.sample_if_due(time_ns)
            if self._device is not None:
                self._device.boundary(kinds.OPTIMIZER_END, time_ns)
            if self._follower is not None:
                self._follower.end(kinds.OPTIMIZER_END, id(optimizer), optimizer)

    def detach(self) -> None:
        """See nothing from now on, at the least cost: in a forked child."""
        self._thread = -1
        self._may_move = False
        self.inside = True
        if self._follower is not None:
            self._follower.detach()

    def resolve(self) -> None:
        """Finish what follows, and log the device times that are known by now."""
        if self._follower is not None:
            self._follower.finish()
        if self._device is not None:
            self._device.resolve()

    def _begin(self, event_word: int, subject: Any) -> bool:
        thread = get_ident()
        if thread != self._thread and not self._moves_to(thread, event_word & kinds.KIND_MASK):
            self.elsewhere += 1
            return False
        self._may_move = False
        self.inside = True
        time_ns = self._log.add(event_word)
        if self._device is not None:
            self._device.boundary(event_word & kinds.KIND_MASK, time_ns)
        if self._follower is not None:
            self._follower.begin(event_word & kinds.KIND_MASK, event_word >> _SHIFT, subject)
        return True

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

    def _end(self, event_word: int) -> None:
        if self._follower is not None:
            self._follower.end(event_word & kinds.KIND_MASK, event_word >> kinds.KIND_BITS, None)
        time_ns = self._log.add(event_word)
        self.inside = False
        self._memory.sample_if_due(time_ns)
        if self._device is not None:
            self._device.boundary(event_word & kinds.KIND_MASK, time_ns)
