"""The timeline of a device, thinned for looking at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.snapshots.categories import PHASES, Categories
from pyrometer.memory.snapshots.layout import reserved_over_time
from pyrometer.memory.snapshots.lifetimes import Lifetimes
from pyrometer.memory.snapshots.snapshot import DeviceSnapshot, Ints
from pyrometer.memory.timeline import PhaseSpan, Timeline

MAX_POINTS = 4000
_SPANS = 400


def build_timeline(
    device: DeviceSnapshot, lifetimes: Lifetimes, categories: Categories, keep: list[int]
) -> Timeline:
    """Bytes over time at no more than some thousand instants.

    The first and last, the highest and lowest of every stretch, and what is asked for are kept.

    Args:
        device: for the clock and the reserved bytes.
        lifetimes: of its allocations.
        categories: of those.
        keep: events that must have a point; -1 is before the first.
    """
    total = lifetimes.sizes_over_time(lifetimes.size)
    reserved = reserved_over_time(device)
    points = _points(total, reserved, [event + 1 for event in keep])
    return Timeline(
        event=(points - 1).tolist(),
        time_s=_seconds(device, points),
        total_bytes=total[points].tolist(),
        category_bytes=_by_category(lifetimes, categories, points),
        reserved_bytes=reserved[points].tolist(),
        phases=_spans(categories.phase, points),
    )


def seconds_at(device: DeviceSnapshot, event: int) -> float | None:
    """When an event was, since the first; `None` without a clock."""
    times = device.events.time_us
    if event < 0 or not len(times) or times[0] < 0:
        return None
    return float(max(int(times[event]) - int(times[0]), 0)) / 1e6


def _points(total: Ints, reserved: Ints, keep: list[int]) -> npt.NDArray[np.int64]:
    """Positions in the series, in order."""
    count = len(total)
    if count <= MAX_POINTS:
        return np.arange(count)
    edges = np.linspace(0, count, MAX_POINTS // 4 + 1).astype(np.int64)
    found = [edges[:-1], np.array([count - 1, *keep, int(reserved.argmax())])]
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        piece = total[begin:end]
        found.append(begin + np.array([piece.argmax(), piece.argmin(), reserved[begin:end].argmax()]))
    return np.unique(np.concatenate(found))


def _seconds(device: DeviceSnapshot, points: npt.NDArray[np.int64]) -> list[float]:
    times = device.events.time_us
    if not len(times) or times[0] < 0:
        return []
    since = np.maximum.accumulate(np.maximum(times - times[0], 0)) / 1e6
    seconds: list[float] = np.concatenate(([0.0], since))[points].tolist()
    return seconds


def _by_category(
    lifetimes: Lifetimes, categories: Categories, points: npt.NDArray[np.int64]
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, name in enumerate(CATEGORIES):
        mine = categories.of == number
        if mine.any():
            found[name] = lifetimes.sizes_over_time(np.where(mine, lifetimes.size, 0))[points].tolist()
    return found


def _spans(phase: npt.NDArray[np.int8], points: npt.NDArray[np.int64]) -> list[PhaseSpan]:
    """Runs of points in one phase; none where the stacks do not tell, or they change all the time."""
    if not phase.any():
        return []
    mine = phase[np.maximum(points - 1, 0)]
    begins = np.flatnonzero(np.concatenate(([True], mine[1:] != mine[:-1])))
    if len(begins) > _SPANS:
        return []
    ends = np.concatenate((begins[1:] - 1, [len(mine) - 1]))
    return [
        PhaseSpan(name=PHASES[int(mine[first])], first=int(first), last=int(last))
        for first, last in zip(begins.tolist(), ends.tolist(), strict=True)
        if mine[first]
    ]
