"""The truth about a trace, computed slowly and apart from the library: plain Python integers, one sweep over time.

Times are taken from the text of the file with `decimal`; kinds, threads and classes are decided here anew. Nothing of
`pyrometer` is imported, so that agreement to the nanosecond proves something.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

PARTS = (
    "compute",
    "exposed_comm",
    "exposed_memcpy",
    "memset",
    "sync",
    "data",
    "runtime",
    "host",
    "other",
    "idle",
)
SHORT = {
    "operator": "cpu_op",
    "cpu_op": "cpu_op",
    "runtime": "call",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "kernel": "kernel",
    "memcpy": "memcpy",
    "gpu_memcpy": "memcpy",
    "memset": "memset",
    "gpu_memset": "memset",
    "python": "python",
    "python_function": "python",
    "user_annotation": "annotation",
}
DEVICE = ("kernel", "memcpy", "memset")
COLLECTIVE_KERNELS = ("nccl", "multimem", "cross_device_reduce")
BLOCKING = re.compile(r"Synchronize$|^hipMemcpyWithStream$|^(cuda|hip)Memcpy$|^(cuda|hip)Free$")
LOADING = re.compile(r"enumerate\(DataLoader\)|dataloader\.py\(\d+\): __next__|^phase:data$")
HOST_COLLECTIVE = re.compile(r"^gloo:|^_c10d_functional::wait_tensor$")


@dataclass
class Event:
    """One complete event."""

    kind: str
    name: str
    thread: tuple[str, str]
    start: int
    end: int
    device: int


@dataclass
class Truth:
    """What is compared; all in nanoseconds."""

    start: int
    end: int
    windows: list[dict[str, int]]  # parts of each window; the last is the whole span
    device_busy: int
    device_idle: int  # within the span, summed over devices
    inner_idle: int  # from the first to the last work of a device, summed over devices
    kernel_busy: int
    kernel_sum: int
    compute_busy: int
    communication: int
    overlapped: int


def load(path: Path) -> list[Event]:
    """The complete events of a file that matter here."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(raw, parse_float=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    return [_event(raw) for raw in events if raw.get("ph") == "X" and _kind(raw) is not None]


def _kind(raw: dict[str, Any]) -> str | None:
    kind = SHORT.get((raw.get("cat") or "").lower())
    return "annotation" if kind == "cpu_op" and raw["name"].startswith("ProfilerStep") else kind


def _event(raw: dict[str, Any]) -> Event:
    start, dur = _ns(raw.get("ts") or 0), _ns(raw.get("dur") or 0)
    device = (raw.get("args") or {}).get("device")
    return Event(
        kind=_kind(raw) or "",
        name=raw["name"],
        thread=(str(raw.get("pid")), str(raw.get("tid"))),
        start=start,
        end=start + max(dur, 0),
        device=-1 if device is None else int(device),
    )


def _ns(value: int | Decimal) -> int:
    if isinstance(value, int):
        return value * 1000
    return int((value * 1000).to_integral_value(ROUND_HALF_EVEN))


def classes(events: list[Event]) -> Iterator[tuple[str, Event]]:
    """Each event with every class that it belongs to."""
    on_device = any(event.kind in DEVICE for event in events)
    working = {event.thread for event in events if event.kind in ("cpu_op", "call")}
    for event in events:
        host = event.kind in ("cpu_op", "annotation", "python")
        if event.kind == "kernel":
            is_comm = any(word in event.name.lower() for word in COLLECTIVE_KERNELS)
            yield ("comm" if is_comm else "compute"), event
        elif event.kind in DEVICE:
            yield event.kind, event
        elif event.kind == "call":
            yield ("sync" if BLOCKING.search(event.name) else "runtime"), event
            yield "working", event
        elif event.kind == "cpu_op":
            yield "host", event
            yield "working", event
        elif event.kind == "python" and (not working or event.thread in working):
            yield "other", event
        if host and LOADING.search(event.name):
            yield "loading", event
        if not on_device and event.kind != "python" and host and HOST_COLLECTIVE.search(event.name):
            yield "collective", event


def measure(events: list[Event], windows: list[tuple[int, int]], steps: list[tuple[int, int]]) -> Truth:
    """Sweep over time, moment by moment; windows are those of the device, which may begin after the steps of the host."""
    start, end = span(events, steps)
    windows = [*windows, (start, end)]
    parts: list[dict[str, int]] = [dict.fromkeys(PARTS, 0) for _ in windows]
    total: Counter[str] = Counter()
    on_device = any(event.kind in DEVICE for event in events)
    for low, high, active, threads in _segments(events, windows):
        alone = threads["working"] - threads["loading"]
        hidden = bool(active["compute"] if on_device else threads["host"] - threads["collective"])
        talking = active["comm"] or threads["collective"]
        held = {
            "compute": active["compute"],
            "exposed_comm": talking and not hidden,
            "exposed_memcpy": active["memcpy"],
            "memset": active["memset"],
            "sync": active["sync"],
            "data": threads["loading"] and not alone,
            "runtime": active["runtime"],
            "host": active["host"],
            "other": active["other"],
            "idle": True,
        }
        part = next(name for name in PARTS if held[name])
        for window, sums in zip(windows, parts, strict=True):
            if window[0] <= low and high <= window[1]:
                sums[part] += high - low
        total["device"] += (high - low) * bool(
            active["compute"] or active["comm"] or active["memcpy"] or active["memset"]
        )
        total["kernel"] += (high - low) * bool(active["compute"] or active["comm"])
        total["compute"] += (high - low) * bool(active["compute"])
        total["comm"] += (high - low) * bool(talking)
        total["overlap"] += (high - low) * bool(talking and hidden)
    busy, inner = _per_device(events)
    return Truth(
        start=start,
        end=end,
        windows=parts,
        device_busy=total["device"],
        device_idle=sum(end - start - one for one in busy),
        inner_idle=inner,
        kernel_busy=total["kernel"],
        kernel_sum=sum(event.end - event.start for event in events if event.kind == "kernel"),
        compute_busy=total["compute"],
        communication=total["comm"],
        overlapped=total["overlap"],
    )


def span(events: list[Event], steps: list[tuple[int, int]]) -> tuple[int, int]:
    """From the first to the last operator, device work or annotated wait for data, and step in which any of them runs."""
    work = [event for name, event in classes(events) if name == "host" or event.kind in DEVICE]
    if not work:
        return (min(e.start for e in events), max(e.end for e in events)) if events else (0, 0)
    work += [event for event in events if event.kind == "annotation" and LOADING.search(event.name)]
    moments = [moment for event in work for moment in (event.start, event.end)]
    for low, high in steps:
        if any(min(event.end, high) > max(event.start, low) for event in work):
            moments += [low, high]
    return min(moments), max(moments)


def _segments(
    events: list[Event], windows: list[tuple[int, int]]
) -> Iterator[tuple[int, int, Counter[str], dict[str, set[tuple[str, str]]]]]:
    """Every stretch in which nothing changes: how many of each class, and on which threads."""
    edges: dict[int, list[tuple[int, str, tuple[str, str]]]] = defaultdict(list)
    for name, event in classes(events):
        if event.end > event.start:
            edges[event.start].append((1, name, event.thread))
            edges[event.end].append((-1, name, event.thread))
    for window in windows:
        for moment in window:
            edges[moment] = edges.get(moment, [])
    active: Counter[str] = Counter()
    count: Counter[tuple[str, tuple[str, str]]] = Counter()
    threads: dict[str, set[tuple[str, str]]] = defaultdict(set)
    moments = sorted(edges)
    for low, high in pairwise(moments):
        for change, name, thread in edges[low]:
            active[name] += change
            count[name, thread] += change
            if count[name, thread]:
                threads[name].add(thread)
            else:
                threads[name].discard(thread)
        yield low, high, active, threads


def _per_device(events: list[Event]) -> tuple[list[int], int]:
    """Busy time of each device, and the sum of the gaps between its work."""
    work: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event.kind in DEVICE:
            work[event.device].append((event.start, event.end))
    busy, gaps = [], 0
    for intervals in work.values():
        intervals.sort()
        reached = intervals[0][0]
        used = 0
        for low, high in intervals:
            if low > reached:
                gaps += low - reached
                reached = low
            if high > reached:
                used += high - reached
                reached = high
        busy.append(used)
    return busy, gaps
