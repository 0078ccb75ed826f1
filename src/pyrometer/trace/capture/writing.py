"""The file of a capture: written beside, renamed, opened again and looked at before anyone relies on it."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pyrometer.errors import InputError, PyrometerError
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import Trace

SUFFIXES = (".json", ".json.gz")


@contextlib.contextmanager
def destination(path: Path | None) -> Iterator[Path]:
    """Where a trace is to be written: at `path`, or in a folder that is gone afterwards.

    Raises:
        InputError: there can be no such file.
    """
    if path is None:
        with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
            yield Path(folder) / "trace.json"
        return
    if not path.name.endswith(SUFFIXES):
        raise InputError(f"{path}: a trace is written as {' or '.join(SUFFIXES)}; name the file so")
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise InputError(f"{path}: {what}; name a file in a folder that exists")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: {path.parent} cannot be written to; name another folder")
    yield path


def partial(path: Path) -> Path:
    """Where the profiler writes first: beside, so that renaming is one step, and never compressed."""
    return path.with_name(f".{path.name.removesuffix('.gz').removesuffix('.json')}.{os.getpid()}.json")


def finish(written: Path, path: Path) -> None:
    """Compress if the name asks for it, and put the file in its place.

    Raises:
        PyrometerError: the profiler wrote nothing, or the disk is full.
    """
    try:
        if path.suffix == ".gz":
            packed = written.with_suffix(".gz")
            with written.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as file:
                shutil.copyfileobj(plain, file, 1 << 20)
            written.unlink()
            written = packed
        written.replace(path)
    except OSError as error:
        raise PyrometerError(
            f"{path}: the trace could not be written: {error.strerror}; name another folder"
        ) from error


def reopened(path: Path, capture: Capture, *, kept: bool, expected_steps: int | None) -> Trace:
    """Read a finished file, complete its record by what is in it, and say what is not.

    Raises:
        PyrometerError: there is not a single event in it.
    """
    file_bytes = path.stat().st_size
    trace = read_trace(path, cache="auto" if kept else None)
    rank = trace.ranks[0]
    if rank.info.num_events == 0 or rank.tables["events"].is_empty():
        raise PyrometerError(
            f"{path}: the profiler recorded nothing; was another profiler running in the same process?"
        )
    notes = list(capture.notes)
    height = rank.steps.filter(rank.steps["source"] == "profiler").height
    if expected_steps is not None and height != expected_steps:
        notes.append(f"the trace holds {height} of the {expected_steps} steps that were recorded")
    capture = msgspec.structs.replace(
        capture,
        raw_bytes=rank.info.raw_bytes,
        file_bytes=file_bytes,
        num_events=rank.info.num_events,
        path=str(path) if kept else None,
        notes=notes,
    )
    return dataclasses.replace(trace, capture=capture)
