"""Tracking the memory of a stretch of code: as a context, or as a decorator around a function."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, Self, TypeVar

import torch

from pyrometer.bench.memory import ResidentMemory
from pyrometer.errors import BudgetExceededError, InputError
from pyrometer.memory.ledger.reading import held_by_place, ledger_of
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.recording.recorder import AllocationRecorder
from pyrometer.quantity import Bytes, Seconds, format_bytes, format_seconds
from pyrometer.record import Record, doc

F = TypeVar("F", bound=Callable[..., Any])

MOST_KEPT = 1000
"""Calls of a decorated function that are remembered."""

MOST_PLACES = 10


class TrackedMemory(Record, frozen=True, kw_only=True):
    """What one stretch of code did to memory."""

    name: str
    duration_s: Seconds
    peak_bytes: Annotated[
        Bytes,
        doc(
            "most that was added at one instant: of tensors where they were recorded, else of the process or device"
        ),
    ]
    kept_bytes: Annotated[Bytes, doc("still there at the end, of what was added")]
    rss_peak_bytes: Annotated[Bytes, doc("resident set of the process, highest")]
    allocated_peak_bytes: Annotated[
        Bytes | None, doc("of torch's allocator on the device; null without CUDA")
    ] = None
    reserved_peak_bytes: Annotated[Bytes | None, doc("held by torch's allocator; null without CUDA")] = None
    ledger_bytes: Annotated[
        dict[str, Bytes],
        doc("tensors at their peak; activations count as temporaries; empty when not recorded"),
    ] = {}
    at_peak: Annotated[list[HeldBytes], doc("what holds the peak; empty when not recorded")] = []

    @property
    def sentence(self) -> str:
        """In one line."""
        kept = f", kept {format_bytes(self.kept_bytes)}"
        return f"{self.name}: +{format_bytes(self.peak_bytes)} at its peak{kept}, in {format_seconds(self.duration_s)}"


class MemoryTracker:
    """Tracks memory while it is entered; see `track_memory`.

    Attributes:
        history: what was tracked, call after call, the last thousand.
    """

    def __init__(
        self, name: str, *, tensors: bool, limit_bytes: Bytes | None, tell: Callable[[str], None] | None
    ) -> None:
        self.history: deque[TrackedMemory] = deque(maxlen=MOST_KEPT)
        self._name = name
        self._tensors = tensors
        self._limit = limit_bytes
        self._tell = tell
        self._open = threading.local()  # threads may be in the same block at the same time

    def __enter__(self) -> Self:
        self._stretches.append(_Stretch(tensors=self._tensors))
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        tracked = self._stretches.pop().ended(self._name)
        self.history.append(tracked)
        if self._tell is not None:
            self._tell(tracked.sentence)
        if kind is None and self._limit is not None and tracked.peak_bytes > self._limit:
            raise BudgetExceededError(
                f"{tracked.name}: +{format_bytes(tracked.peak_bytes)} at its peak, {format_bytes(self._limit)} are allowed"
            )

    @property
    def _stretches(self) -> list[_Stretch]:
        """What is under way in this thread, the innermost last."""
        if not hasattr(self._open, "stretches"):
            self._open.stretches = []
        stretches: list[_Stretch] = self._open.stretches
        return stretches

    @property
    def last(self) -> TrackedMemory:
        """What was tracked last.

        Raises:
            LookupError: nothing yet.
        """
        if not self.history:
            raise LookupError(
                f"{self._name}: nothing has been tracked yet; leave the block, or call the function"
            )
        return self.history[-1]

    @property
    def peak_bytes(self) -> Bytes:
        """Highest `peak_bytes` of all that was tracked."""
        return max((memory.peak_bytes for memory in self.history), default=0)

    def __call__(self, function: F) -> F:
        """Track every call of a function; `function.memory` is this tracker.

        Raises:
            InputError: the function is a generator or a coroutine, whose call returns before its body has run.
        """
        kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        if any(is_kind(function) for is_kind in kinds):
            raise InputError(
                f"{function.__qualname__}: its call returns before its body runs; write `with track_memory():` inside of it"
            )
        self._name = str(getattr(function, "__qualname__", function))

        @functools.wraps(function)
        def tracked(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        tracked.memory = self  # type: ignore[attr-defined]
        return tracked  # type: ignore[return-value]


def track_memory(
    name: str = "block",
    *,
    tensors: bool = True,
    limit_bytes: Bytes | None = None,
    tell: Callable[[str], None] | None = None,
) -> MemoryTracker:
    """Track what a block or a function does to memory.

    Args:
        name: of the block; a decorated function has its own.
        tensors: record every operator, which gives exact peaks with category and line and makes small operators take
            two to three times as long. Without it the counters of the process and the device are read, which costs
            microseconds, and cannot see what is freed and used again within the process.
        limit_bytes: raise `BudgetExceededError`, which fails a test, when more is added.
        tell: called with a sentence after each stretch, such as `print`.

    >>> with track_memory() as tracked:
    ...     x = torch.zeros(1024, 1024)
    ...     y = x + 1
    ...     del x
    >>> tracked.last.peak_bytes, tracked.last.kept_bytes
    (8388608, 4194304)
    >>> @track_memory(tensors=False)
    ... def load() -> list[int]:
    ...     return [1, 2, 3]
    >>> load(), len(load.memory.history)
    ([1, 2, 3], 1)
    """
    return MemoryTracker(name, tensors=tensors, limit_bytes=limit_bytes, tell=tell)


class _Stretch:
    """One stretch under way."""

    def __init__(self, *, tensors: bool) -> None:
        gc.collect(0)
        self._meter = ResidentMemory()
        self._meter.reset_peak()
        self._rss = self._meter.current()
        self._device = torch.device("cuda") if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
        self._allocated = 0
        if self._device is not None:
            torch.cuda.reset_peak_memory_stats(self._device)
            self._allocated = torch.cuda.memory_allocated(self._device)
        # Without following what autograd saves, which transforms of torch.func in the user's code would refuse.
        device = self._device or torch.device("cpu")
        self._recorder = AllocationRecorder(device, saved=False) if tensors else None
        self._began = time.perf_counter()
        if self._recorder is not None:
            self._recorder.__enter__()

    def ended(self, name: str) -> TrackedMemory:
        """Stop, and say what was seen."""
        if self._recorder is not None:
            self._recorder.__exit__(None, None, None)
        duration = time.perf_counter() - self._began
        rss_peak = self._meter.peak()
        fields: dict[str, Any] = {}
        peak, kept = rss_peak - self._rss, self._meter.current() - self._rss
        if self._device is not None:
            allocated_peak = torch.cuda.max_memory_allocated(self._device)
            peak, kept = (
                allocated_peak - self._allocated,
                torch.cuda.memory_allocated(self._device) - self._allocated,
            )
            fields["allocated_peak_bytes"] = allocated_peak
            fields["reserved_peak_bytes"] = torch.cuda.max_memory_reserved(self._device)
        fields |= {"peak_bytes": max(peak, 0), "kept_bytes": max(kept, 0)}
        if self._recorder is not None:
            fields |= _of_tensors(self._recorder.log)
        return TrackedMemory(name=name, duration_s=duration, rss_peak_bytes=rss_peak, **fields)


def _of_tensors(log: AllocationLog) -> dict[str, Any]:
    """What was added: tensors of before are the ground on which it stands."""
    event, peak, kept = added(log)
    live = log.live_at(event)
    return {
        "peak_bytes": peak,
        "kept_bytes": kept,
        "ledger_bytes": ledger_of(live),
        "at_peak": held_by_place(
            [allocation for allocation in live if not allocation.preexisting], MOST_PLACES
        ),
    }


def added(log: AllocationLog) -> tuple[int, Bytes, Bytes]:
    """The event with the most bytes that were allocated during the recording, how many, and how many remain."""
    held = peak = 0
    at = -1
    for event, index in enumerate(log.events):
        allocation = log.allocations[index if index >= 0 else ~index]
        if not allocation.preexisting:
            held += allocation.nbytes if index >= 0 else -allocation.nbytes
            if held > peak:
                peak, at = held, event
    return at, peak, held
