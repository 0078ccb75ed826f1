"""Rows as a table for a terminal of 80 columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrometer.monitor.live.fleet import Row
from pyrometer.quantity import format_seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

SILENT_S = 10.0
"""A process that has said nothing for longer is marked."""


def view_of(rows: Sequence[Row]) -> RenderableType:
    """The table, or that there is nothing yet."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return Text("No ticks yet: a monitor writes one every second, after its first call.")
    table = Table(box=None, pad_edge=False)
    table.add_column("process", overflow="fold")
    table.add_column("call", overflow="fold")
    for name in ("per s", "p50", "p95", "p99", "errors", "flying"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row), style="bold" if row.alarms else None)
    notes = [*_alarms(rows), *_dropped(rows)]
    return Group(table, *(Text(note) for note in notes))


def _cells(row: Row) -> list[str]:
    name = " ".join(part for part in (row.source.model, row.source.version, str(row.source.pid)) if part)
    silent = f" (silent {row.silent_s:.0f} s)" if row.silent_s > SILENT_S else ""
    times = ["–" if math.isnan(one) else format_seconds(one) for one in (row.p50_s, row.p95_s, row.p99_s)]
    return [name + silent, row.call, f"{row.rate_hz:.3g}", *times, str(row.num_failed), str(row.in_flight)]


def _alarms(rows: Sequence[Row]) -> list[str]:
    found = {(row.source.model, row.source.pid): row.alarms for row in rows if row.alarms}
    return [f"alarm: {model} {pid}: {', '.join(alarms)}" for (model, pid), alarms in found.items()]


def _dropped(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row.call} of {row.source.pid}: {row.num_dropped} latencies dropped in the last minute; raise capacity"
        for row in rows
        if row.num_dropped
    ]
