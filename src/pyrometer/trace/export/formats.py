"""Writing a trace in the format that a file's name asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from pyrometer.errors import InputError
from pyrometer.trace.export.chrome import export_chrome
from pyrometer.trace.export.folded import folded_stacks
from pyrometer.trace.export.speedscope import speedscope
from pyrometer.trace.export.tables import export_table
from pyrometer.trace.export.whole import exporting
from pyrometer.trace.trace import Trace


def export_trace(trace: Trace, path: Path) -> Path:
    """Write a trace; the end of the file's name chooses the format.

    Raises:
        InputError: no format has this ending, the format holds one rank and there are several, or the place cannot be
            written.
    """
    for ending, write in FORMATS.items():
        if path.name.lower().endswith(ending):
            write(trace, path)
            return path
    raise InputError(f"{path}: its ending names no format; legal are {', '.join(FORMATS)}")


def _write_chrome(trace: Trace, path: Path) -> None:
    export_chrome(trace, path)


def _write_events(trace: Trace, path: Path) -> None:
    export_table(trace.events, path)


def _write_folded(trace: Trace, path: Path) -> None:
    _write(path, folded_stacks(trace.rank()).encode())


def _write_speedscope(trace: Trace, path: Path) -> None:
    _write(path, msgspec.json.encode(speedscope(trace.rank())))


def _write(path: Path, content: bytes) -> None:
    with exporting(path) as beside:
        beside.write_bytes(content)


FORMATS: dict[str, Callable[[Trace, Path], None]] = {
    ".speedscope.json": _write_speedscope,
    ".json": _write_chrome,
    ".json.gz": _write_chrome,
    ".parquet": _write_events,
    ".csv": _write_events,
    ".folded": _write_folded,
}
"""Ending of the name: what writes it; the first that fits."""
