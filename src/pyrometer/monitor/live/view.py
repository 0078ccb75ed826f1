"""What processes do now as a table for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.monitor.live.record import CallNow, LiveDocument, ProcessNow
from pyrometer.quantity import format_seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

SILENT_S = 10.0
"""A process that has said nothing for longer is marked."""


def view_of(now: LiveDocument) -> RenderableType:
    """The table, or that there is nothing yet."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if not any(process.calls for process in now.processes):
        return Text("No ticks yet: a monitor writes one every second, after its first call.")
    table = Table(box=None, pad_edge=False)
    table.add_column("process", overflow="fold")
    table.add_column("call", overflow="fold")
    for name in ("per s", "p50", "p95", "p99", "errors", "flying"):
        table.add_column(name, justify="right", no_wrap=True)
    for process in now.processes:
        for call in process.calls:
            table.add_row(
                *(Text(cell) for cell in _cells(process, call)), style="bold" if process.alarms else None
            )
    return Group(table, *(Text(note) for process in now.processes for note in _notes(process)))


def _cells(process: ProcessNow, call: CallNow) -> list[str]:
    silent = f" (silent {process.silent_s:.0f} s)" if process.silent_s > SILENT_S else ""
    times = ["–" if one is None else format_seconds(one) for one in (call.p50_s, call.p95_s, call.p99_s)]
    rate = f"{call.rate_hz:.3g}"
    return [_name(process) + silent, call.call, rate, *times, str(call.num_failed), str(call.in_flight)]


def _name(process: ProcessNow) -> str:
    source = process.source
    return " ".join(part for part in (source.model, source.version, str(source.pid)) if part)


def _notes(process: ProcessNow) -> Iterator[str]:
    if process.alarms:
        yield f"alarm: {_name(process)}: {', '.join(process.alarms)}"
    for policy, rung in process.rungs.items():
        yield f"{policy}: {_name(process)} stands on {rung}"
    for call in process.calls:
        if call.num_dropped:
            pid = process.source.pid
            yield f"{call.call} of {pid}: {call.num_dropped} latencies dropped in the last minute; raise capacity"
