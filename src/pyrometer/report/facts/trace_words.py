"""Names, times and places of traces, as all chapters about them write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import median

from pyrometer.place import Place
from pyrometer.quantity import format_seconds, significant
from pyrometer.report.charts.shares import Share
from pyrometer.report.facts.layout import percent
from pyrometer.text import shortened
from pyrometer.trace.records.breakdown import Parts
from pyrometer.trace.records.rank import RankReport

MOST_LISTED = 10
"""Rows of a table on the page; the document holds more."""

MOST_PARTS = 5
"""Parts of the breakdown that a table with a row per step or rank has columns for."""

PART_SLOTS = {
    "compute": 2,
    "exposed_comm": 3,
    "exposed_memcpy": 1,
    "memset": 7,
    "sync": 6,
    "runtime": 8,
    "data": 0,
    "host": 4,
    "other": 9,
    "idle": 5,
}
"""Parts of the breakdown, and their place in the palette."""

PART_NAMES = {
    "compute": "compute",
    "exposed_comm": "exposed communication",
    "exposed_memcpy": "exposed copies",
    "memset": "fills",
    "sync": "synchronisation",
    "runtime": "launching",
    "data": "data loading",
    "host": "operators on the host",
    "other": "Python",
    "idle": "nothing recorded",
}


IDLE_CAUSES = {
    "sync_drain": "the host had waited for the device",
    "launch_starvation": "nothing was launched in time",
    "between_collectives": "the next collective was not yet issued",
    "turnaround": "the device's turn-around",
    "dependency": "waited for an event or another stream",
    "unknown": "the launch is not in the trace",
    "no_operator": "no operator ran",
}

OF_SPAN = "of the span"
"""Column of shares of the traced span, from the first recorded work to the last."""

SHARES_OVERLAP = (
    "Shares are of the traced span; threads and streams run at the same time, so that shares can add up to more than 100 %, "
    "and one on several of them can be a multiple of it."
)
"""Stands below tables with such shares."""

PHASE_SOURCES = {
    "phase": "Pyrometer's marks",
    "annotation": "annotations of the program",
    "optimizer": "the optimizer's mark",
    "loader": "the loader's mark",
    "autograd": "operators of autograd",
    "module": "modules",
    "copy": "copies to the device",
    "order": "the order of events",
}
"""What tells a phase."""

COPY_KINDS = {
    "H2D": "host to device",
    "D2H": "device to host",
    "D2D": "within a device",
    "P2P": "between devices",
    "H2H": "within the host",
    "memset": "fill",
}

MISMATCHES = {
    "missing": "recorded by some of their ranks only",
    "names": "named differently by their ranks",
    "sizes": "sized differently by their ranks",
    "apart": "ended on one rank before they began on another",
}
"""Why collectives of several ranks are not matched."""

HOST_DOINGS = {
    "data_loading": "loaded data",
    "garbage_collection": "collected garbage",
    "allocator": "allocated device memory",
    "sync": "waited for the device",
    "runtime": "launched",
    "operator": "ran operators",
    "python": "ran Python",
    "annotation": "was between operators",
    "nothing": "nothing recorded",
}


ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")

PATH_CLASSES = {
    "memcpy": "copies",
    "memset": "fills",
    "launch": "launch latency",
    "sync": "waiting in a call",
    "host_op": "operators on the host",
    "python": "Python",
    "data": "data loading",
    "idle": "idle",
    "untraced": "unrecorded host time",
}


def short(text: str | None, most: int = 60) -> str:
    """A name that fits a table: the end of a long one is cut, and addresses in memory, which mean nothing later, left out.

    >>> short("a" * 70)[-3:], short(None), short("<built-in method run of type object at 0x7f17>")
    ('aa…', '', '<built-in method run of type object>')
    """
    return shortened(ADDRESS.sub("", text or ""), most)


def ns(value: float | None) -> str:
    """Nanoseconds with a fitting unit.

    >>> ns(1500), ns(None)
    ('1.50 µs', '–')
    """
    return format_seconds(None if value is None else value * 1e-9)


def per_step(number: float | None) -> str:
    """How many there are in a step, on average.

    >>> per_step(24944.3), per_step(7.5), per_step(None)
    ('24,944', '7.5', '–')
    """
    if number is None:
        return "–"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def of_span(share: float) -> str:
    """A share of the traced span; what runs on several threads or streams at the same time may take longer than it.

    >>> of_span(0.5), of_span(1.34)
    ('50 %', '1.34×')
    """
    return percent(share) if share <= 1 else f"{significant(share)}×"


def place(where: Place) -> str:
    """A place in one line: the source line if it is known, else module or operator.

    >>> place(Place(file="train.py", line=12, function="step", op="aten::item"))
    'train.py:12 step'
    >>> place(Place(module="Linear_0")), place(Place(module="3")), place(Place())
    ('Linear_0', 'module 3', '')
    """
    if where.file is not None:
        return f"{short_path(where.file)}:{where.line} {where.function or ''}".rstrip()
    module = f"module {where.module}" if (where.module or "").isdigit() else where.module
    return module or where.op or where.phase or ""


def short_path(path: str) -> str:
    """The end of a long path.

    >>> short_path("a/b.py"), short_path("/home/me/project/src/model/layers.py")
    ('a/b.py', '…/model/layers.py')
    """
    parts = path.split("/")
    return path if len(parts) <= 3 else "…/" + "/".join(parts[-2:])


def part_shares(parts: Parts, whole_ns: float) -> list[Share]:
    """The parts that are not empty, in the order in which they are drawn, as times that add up to `whole_ns`."""
    total = parts.total_ns
    found = [(name, getattr(parts, name)) for name in PART_SLOTS]
    return [
        Share(PART_NAMES[name], value / total, ns(value / total * whole_ns), PART_SLOTS[name])
        for name, value in found
        if value
    ]


def widest_parts(sums_ns: Mapping[str, int]) -> list[str]:
    """The largest parts, in the order in which they are drawn: as many as have room beside each other in a table.

    >>> widest_parts({"data": 5, "compute": 9, "idle": 0})
    ['compute', 'data']
    """
    held = sorted((name for name, ns in sums_ns.items() if ns), key=lambda name: -sums_ns[name])[:MOST_PARTS]
    return [name for name in PART_SLOTS if name in held]


def typical_ns(report: RankReport) -> float:
    """How long a step of a trace takes; all that was traced, where no step is marked or the marks outlast the work."""
    typical = median_step(report) if report.steps else 0
    return typical if 0 < typical <= report.span_ns else report.span_ns


def median_step(report: RankReport) -> int:
    """The middle length of its steps, ns."""
    return round(median(step.end_ns - step.start_ns for step in report.steps))
