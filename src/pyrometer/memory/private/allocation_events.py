"""The allocator's own account: what the profiler noted of every allocation and free, with addresses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler, profiler_running, quiet

FREES_PER_COMPLAINT = 1000
_STDERR = 2


class AllocatorEvent(NamedTuple):
    """An allocation, or with negative bytes a free."""

    time_ns: int  # since the epoch
    address: int
    nbytes: Bytes
    device: str
    operator: str
    """The innermost operator or annotation around it."""


def allocator_events(run: Callable[[], None]) -> list[AllocatorEvent]:
    """Run something under the profiler and return what the allocators of all devices did meanwhile, in time order.

    What is written to stderr meanwhile comes afterwards, without the profiler's own lines: it complains of every block
    that is freed and was there before.
    """
    account = AllocatorAccount()
    account.start()
    with quiet():
        try:
            run()
        finally:
            events = account.stop()
    return events


class AllocatorAccount:
    """The account from a start to a stop that are not in one function.

    The profiler complains on stderr of the first block that is freed and was there before, and then of every thousandth of the
    process. `start` has it complain of a block of ours, unheard, so that the next 999 are free.
    """

    def __init__(self) -> None:
        self._profiler, _ = new_profiler(torch, {"profile_memory": True})
        self._blocks: list[torch.Tensor] = []

    def start(self) -> None:
        """The account begins.

        Raises:
            InputError: another profiler is at work.
        """
        if profiler_running(torch):
            raise InputError("a profiler is at work already, and there can be only one; let it end before")
        self._blocks = [torch.empty(1) for _ in range(FREES_PER_COMPLAINT)]
        with quiet():
            self._profiler.start()
            before = _caught_bytes()
            while self._blocks and _caught_bytes() == before:
                self._blocks.pop()

    def stop(self) -> list[AllocatorEvent]:
        """The account ends; returns what it says, in time order."""
        with quiet():
            self._profiler.stop()
        self._blocks.clear()
        tree = self._profiler.profiler.kineto_results.experimental_event_tree()
        return sorted(_allocations(tree), key=lambda event: event.time_ns)


def _caught_bytes() -> int:
    """How much is in the file that stderr goes to while it is quiet."""
    try:
        return os.fstat(_STDERR).st_size
    except OSError:  # no stderr
        return 0


def _allocations(tree: list[Any]) -> Iterator[AllocatorEvent]:
    from torch._C._profiler import _EventType

    waiting: list[tuple[Any, str]] = [(root, "") for root in tree]
    while waiting:
        event, around = waiting.pop()
        if event.tag == _EventType.Allocation:
            fields = event.extra_fields
            yield AllocatorEvent(
                event.start_time_ns, fields.ptr, fields.alloc_size, fields.device.type, around
            )
        inner = event.name if event.tag == _EventType.TorchOp else around
        waiting.extend((child, inner) for child in event.children)
