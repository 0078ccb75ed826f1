"""Fragmentation at an instant, and what it did to a request that failed."""

from __future__ import annotations

import msgspec

from pyrometer.memory.place import HeldBytes
from pyrometer.memory.snapshots.allocator.sizes import SMALL_LIMIT
from pyrometer.memory.snapshots.layout import Layout
from pyrometer.memory.snapshots.report import FailedRequest, Fragmentation
from pyrometer.memory.snapshots.snapshot import DeviceSnapshot
from pyrometer.quantity import counted, format_bytes


def fragmentation(layout: Layout, event: int, time_s: float | None) -> Fragmentation:
    """The figures of one instant."""
    free, reserved = layout.free_bytes, layout.reserved_bytes
    largest = int(layout.gaps.size.max(initial=0))
    return Fragmentation(
        event=event,
        time_s=time_s,
        reserved_bytes=reserved,
        allocated_bytes=layout.allocated_bytes,
        pending_free_bytes=layout.pending_bytes,
        inactive_split_bytes=free - layout.cached_whole_bytes,
        cached_whole_bytes=layout.cached_whole_bytes,
        rounding_bytes=max(layout.allocated_bytes - layout.requested_bytes, 0),
        free_bytes=free,
        largest_free_bytes=largest,
        free_blocks=len(layout.gaps.size),
        external=1 - largest / free if free else 0.0,
        unused=1 - layout.allocated_bytes / reserved if reserved else 0.0,
    )


def failed_request(
    device: DeviceSnapshot,
    layout: Layout,
    event: int,
    *,
    time_s: float | None,
    site: str,
    held: list[HeldBytes],
) -> FailedRequest:
    """A request that failed, and how much was free then."""
    events = device.events
    request, left = int(events.size[event]), int(events.address[event])
    usable = layout.usable_gaps(
        large=request > SMALL_LIMIT, stream=int(events.stream[event]), pool=int(events.pool[event])
    )
    found = FailedRequest(
        event=event,
        time_s=time_s,
        request_bytes=request,
        device_free_bytes=left,
        allocator_free_bytes=layout.free_bytes,
        usable_free_bytes=int(usable.sum()),
        largest_free_bytes=int(usable.max(initial=0)),
        free_blocks=len(usable),
        allocated_bytes=layout.allocated_bytes,
        reserved_bytes=layout.reserved_bytes,
        site=site,
        held=held,
        sentence="",
    )
    return msgspec.structs.replace(found, sentence=_sentence(found))


def _sentence(failed: FailedRequest) -> str:
    """What failed, and why, in one sentence."""
    usable, largest = format_bytes(failed.usable_free_bytes), format_bytes(failed.largest_free_bytes)
    head = f"the {format_bytes(failed.request_bytes)} request failed with"
    left = f"{format_bytes(failed.device_free_bytes)} left on the device"
    if failed.device_free_bytes >= failed.request_bytes:
        return f"{head} {left}: a limit for the process is set, or the driver counts what it cannot give"
    if not failed.usable_free_bytes:
        others = format_bytes(failed.allocator_free_bytes)
        elsewhere = f" ({others} lie in other pools and streams)" if failed.allocator_free_bytes else ""
        return f"{head} nothing free that it could use{elsewhere}, and {left}"
    if failed.largest_free_bytes >= failed.request_bytes:
        return f"{head} a free block of {largest}, which a setting kept it from using, and {left}"
    return f"{head} {usable} free in {counted(failed.free_blocks, 'block')} of at most {largest}, and {left}"
