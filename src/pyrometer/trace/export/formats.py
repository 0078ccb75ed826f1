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
from pyrometer.trace.trace import Trace


def export_trace(trace: Trace, path: Path) -> Path:
    """Write a trace; the end of the file's name chooses the format.

    Raises:
        InputError: no format has this ending, the format holds one rank and there are several, or the place cannot be
            written.
    """
    for ending, write in FORMATS.items():
        if path.name.lower().endswith(ending):
            try:
                write(trace, path)
            except OSError as error:
                raise InputError(
                    f"{path}: cannot be written ({error.strerror or error}); pass another place"
                ) from error
            return path
    raise InputError(f"{path}: its ending names no format; legal are {', '.join(FORMATS)}")


def _write_chrome(trace: Trace, path: Path) -> None:
    export_chrome(trace, path)


def _write_events(trace: Trace, path: Path) -> None:
    export_table(trace.events, path)


def _write_folded(trace: Trace, path: Path) -> None:
    _write_beside(path, folded_stacks(trace.rank()).encode())


def _write_speedscope(trace: Trace, path: Path) -> None:
    _write_beside(path, msgspec.json.encode(speedscope(trace.rank())))


def _write_beside(path: Path, content: bytes) -> None:
    """Complete or not at all."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


FORMATS: dict[str, Callable[[Trace, Path], None]] = {
    ".speedscope.json": _write_speedscope,
    ".json": _write_chrome,
    ".json.gz": _write_chrome,
    ".parquet": _write_events,
    ".csv": _write_events,
    ".folded": _write_folded,
}
"""Ending of the name: what writes it; the first that fits."""
