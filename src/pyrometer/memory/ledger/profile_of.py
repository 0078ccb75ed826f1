"""From a log of allocations to the profile that is shown: peak, ledger, timeline, and what holds the peak."""

from __future__ import annotations

import numpy as np

from pyrometer.memory.ledger.reading import at_work, bytes_by, held_by_place, ledger_of, phase_at
from pyrometer.memory.ledger.replay import timeline_of
from pyrometer.memory.profile import MemoryProfile, ProcessLevels
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.quantity import Bytes

MOST_PLACES = 40
"""Places that hold the peak, in the record; each is a line and a module."""


def profile_of_log(
    log: AllocationLog, *, name: str, device: str, source: str, levels: ProcessLevels, workspace: Bytes = 0
) -> MemoryProfile:
    """Read a log.

    Args:
        log: what was recorded.
        name: of the program.
        device: that was recorded.
        source: how, in words.
        levels: of the process and the device meanwhile; what the allocator reserved beyond its peak is the cache.
        workspace: bytes that operators took for themselves at the peak, which the log does not show.

    >>> log = AllocationLog()
    >>> profile_of_log(log, name="p", device="cpu", source="", levels=ProcessLevels(), workspace=64).peak_bytes
    64
    """
    peak_event = _peak_event(log)
    live = log.live_at(peak_event)
    ledger = ledger_of(live)
    ledger["workspace"] += workspace
    cache = max(0, (levels.reserved_peak_bytes or 0) - (levels.allocated_peak_bytes or 0))
    ledger["cache"] += cache
    phase = phase_at(log, peak_event)
    return MemoryProfile(
        name=name,
        device=device,
        source=source,
        peak_bytes=log.peak_bytes + workspace + cache,
        peak_phase=phase.name if phase else None,
        peak_step=phase.step if phase else 0,
        ledger_bytes=ledger,
        steady_bytes=log.live_bytes,
        timeline=timeline_of(log),
        at_peak=held_by_place(live, MOST_PLACES),
        by_module=bytes_by(live, lambda allocation: allocation.origin.module),
        by_operator=bytes_by(live, lambda allocation: allocation.origin.operator),
        by_dtype=bytes_by(live, lambda allocation: allocation.dtype),
        levels=levels,
        notes=list(log.notes),
    )


def _peak_event(log: AllocationLog) -> int:
    """The event after which most was alive; on ties one of a phase that works."""
    if not log.events:
        return log.peak_event
    changes = [
        log.allocations[index].nbytes if index >= 0 else -log.allocations[~index].nbytes
        for index in log.events
    ]
    return at_work(np.cumsum(changes), [(phase.name, phase.event) for phase in log.phases])
