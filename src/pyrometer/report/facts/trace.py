"""A trace in words: where the time goes, what bounds it, what could be won back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrometer.quantity import format_bytes, format_rate, format_seconds
from pyrometer.report.charts.shares import Share
from pyrometer.report.facts.layout import Fact, Table, counted, percent
from pyrometer.trace.analysis.breakdown import Parts
from pyrometer.trace.where import Where

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


def ns(value: float | None) -> str:
    """Nanoseconds with a fitting unit.

    >>> ns(1500), ns(None)
    ('1.50 µs', '–')
    """
    return format_seconds(None if value is None else value * 1e-9)


def place(where: Where) -> str:
    """A place in one line: the source line if it is known, else module or operator.

    >>> place(Where(file="train.py", line=12, function="step", op="aten::item"))
    'train.py:12 step'
    >>> place(Where(module="Linear_0")), place(Where())
    ('Linear_0', '')
    """
    if where.file is not None:
        return f"{where.file}:{where.line} {where.function or ''}".rstrip()
    return where.module or where.op or where.phase or ""


def part_shares(parts: Parts) -> list[Share]:
    """The parts that are not empty, in the order in which they are drawn."""
    total = parts.total_ns
    found = [(name, getattr(parts, name)) for name in PART_SLOTS]
    return [
        Share(PART_NAMES[name], value / total, ns(value), PART_SLOTS[name]) for name, value in found if value
    ]


def part_table(parts: Parts) -> Table:
    """The same as a table."""
    rows = [(share.name, percent(share.share), share.said) for share in part_shares(parts)]
    return Table(("where", "share", "time"), rows)
