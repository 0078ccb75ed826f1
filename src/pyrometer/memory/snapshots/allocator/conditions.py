"""When a change of the allocator's settings is called for: each condition gives the figures in words, or `None`."""

from __future__ import annotations

import numpy as np

from pyrometer.memory.snapshots.allocator.device import RecordedDevice
from pyrometer.memory.snapshots.allocator.sizes import SMALL_LIMIT
from pyrometer.quantity import counted, format_bytes, format_percent

_NEVER_NEEDED = 0.1
_SPLIT_SHARE = 0.1
_ROUNDING_SHARE = 0.1
_MANY_SIZES = 16
_STORM = 3
_EMPTY_OFTEN = 3


def fragmented(device: RecordedDevice) -> str | None:
    """Free memory that cannot be used or returned, at an instant that matters."""
    for failed in device.report.oom:
        if failed.usable_free_bytes >= failed.request_bytes > failed.largest_free_bytes:
            return failed.sentence
    never = device.never_needed_bytes
    if never <= _NEVER_NEEDED * device.report.peak_reserved_bytes:
        return None
    for instant in device.instants:
        share = instant.inactive_split_bytes / instant.reserved_bytes if instant.reserved_bytes else 0.0
        if share > _SPLIT_SHARE:
            return (
                f"{format_percent(share, 2)} of {format_bytes(instant.reserved_bytes)} reserved lay in "
                f"{counted(instant.free_blocks, 'free piece')} of at most {format_bytes(instant.largest_free_bytes)} between "
                f"blocks in use, and {format_bytes(never)} of the peak were never needed at once"
            )
    return None


def wasteful(device: RecordedDevice) -> str | None:
    """Much more was reserved than was ever in use."""
    never, peak = device.never_needed_bytes, device.report.peak_reserved_bytes
    failed = [
        request for request in device.report.oom if request.allocator_free_bytes >= request.request_bytes
    ]
    if failed:
        return failed[0].sentence
    if never <= _NEVER_NEEDED * peak:
        return None
    return (
        f"{format_bytes(peak)} were reserved, though never more than {format_bytes(device.report.peak_bytes)} were in "
        "use at one time"
    )


def many_sizes(device: RecordedDevice) -> str | None:
    """Requests of ever other sizes, so that freed blocks rarely fit."""
    waste = wasteful(device)
    large = np.unique(device.lifetimes.size[device.lifetimes.size > SMALL_LIMIT])
    if waste is None or len(large) < _MANY_SIZES:
        return None
    return f"large blocks of {len(large)} sizes were asked for; {waste}"


def flush_storm(device: RecordedDevice) -> str | None:
    """The device refused again and again."""
    retries = [release for release in device.releases if release.reason == "retry"]
    if len(retries) < _STORM:
        return None
    mean = sum(retry.num_bytes for retry in retries) / len(retries)
    return (
        f"{counted(len(retries), 'time')} the device refused, all cached memory ({format_bytes(mean)} on average) was "
        "given back and taken again, with the device idle meanwhile"
    )


def empties_often(device: RecordedDevice) -> str | None:
    """The program empties the cache again and again."""
    asked = [release for release in device.releases if release.reason == "empty_cache"]
    if len(asked) < _EMPTY_OFTEN:
        return None
    total = sum(release.num_bytes for release in asked)
    return (
        f"the cache was emptied {counted(len(asked), 'time')}, {format_bytes(total)} in all, and filled again"
    )


def rounded_much(device: RecordedDevice) -> str | None:
    """Rounding to powers of two costs much."""
    peak = device.report.fragmentation.at_peak
    if peak is None or not any(device.settings.roundup_power2_divisions):
        return None
    share = peak.rounding_bytes / peak.allocated_bytes if peak.allocated_bytes else 0.0
    return f"rounding adds {format_percent(share, 2)} at the peak" if share > _ROUNDING_SHARE else None
