"""The allocator's own account: what the profiler noted of every allocation and free, with addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler, profiler_running, quiet


class AllocatorEvent(NamedTuple):
    """An allocation, or with negative bytes a free."""

    time_ns: int  # since the epoch
    address: int
    nbytes: Bytes
    device: str
    operator: str
    """The innermost operator or annotation around it."""


def missing() -> list[str]:
    """What this torch lacks.

    >>> missing()
    []
    """
    profiler = torch._C._autograd  # noqa: SLF001
    if hasattr(getattr(profiler, "_ProfilerResult", None), "experimental_event_tree"):
        return []
    return ["the profiler's tree of events: programs that are compiled have no ledger"]


def allocator_events(run: Callable[[], None]) -> list[AllocatorEvent]:
    """Run something under the profiler and return what the allocators of all devices did meanwhile, in time order.

    What is written to stderr meanwhile comes afterwards, without the profiler's own lines: it complains of every block
    that is freed and was there before.
    """
    profiler, _ = new_profiler(torch, {"profile_memory": True})
    with quiet():
        profiler.start()
        try:
            run()
        finally:
            profiler.stop()
    tree = profiler.profiler.kineto_results.experimental_event_tree()
    return sorted(_allocations(tree), key=lambda event: event.time_ns)


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
