"""JSON lines on disk: `ticks-PID.jsonl` and `calls-PID.jsonl`, each tick with one write, rotated, and bounded in all.

After a kill the files are whole up to the last tick. Each process writes its own; those of processes that are gone are
deleted, the oldest first, once there are more than `MOST_FILES`.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from pyrometer.monitor.tick import Event, Tick
from pyrometer.monitor.windows import without_calls
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc

MOST_FILES = 64


class LogLine(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One call that was told in full, as a line of `calls-PID.jsonl`."""

    timestamp: Annotated[str, doc("UTC, in ISO 8601")]
    event: Annotated[str, doc("sample, slow, or what else happened")]
    model: str = ""
    version: str = ""
    device: str = ""
    host: str = ""
    pid: int = 0
    call: Annotated[str, doc("name of the watched function")] = ""
    latency_s: Seconds | None = None
    shape: Annotated[str, doc("of the tensors among the arguments: 8x3x224x224,8")] = ""
    batch: int | None = None
    memory_bytes: Bytes | None = None
    compilations: Annotated[float, doc("within the same tick")] = 0.0
    graph_breaks: Annotated[float, doc("within the same tick")] = 0.0
    error: Annotated[str, doc("type of the exception")] = ""
    trace_id: str = ""
    fields: dict[str, str | float | int | bool] = {}


class JsonLines:
    """The sink that writes them."""

    def __init__(self, folder: Path, *, file_bytes: Bytes, num_files: int) -> None:
        self._folder = folder
        self._file_bytes = file_bytes
        self._num_files = num_files
        self._pid = os.getpid()
        self._is_pruned = False
        self._calls_up_to = 0

    def write(self, ticks: Sequence[Tick], /) -> None:
        """Append them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self._is_pruned:
            prune(self._folder, MOST_FILES)
            self._is_pruned = True
        fresh = [
            tick for tick in ticks if tick.sequence > self._calls_up_to
        ]  # the rest was written before a failure
        self._append("calls", [line_of(tick, event) for tick in fresh for event in tick.events])
        self._calls_up_to = ticks[-1].sequence
        self._append("ticks", [without_calls(tick) for tick in ticks])

    def close(self) -> None:
        """Nothing is open between two writes."""

    def _append(self, kind: str, records: Sequence[Record]) -> None:
        if not records:
            return
        raw = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        path = self._folder / f"{kind}-{self._pid}.jsonl"
        if path.exists() and path.stat().st_size + len(raw) > self._file_bytes:
            self._rotate(path)
        whole = path.stat().st_size if path.exists() else 0
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                written = os.write(descriptor, raw)
            finally:
                os.close(descriptor)
            if written < len(raw):
                raise OSError(28, "no space left for a whole tick", str(path))  # noqa: TRY301
        except OSError:
            if path.exists() and path.stat().st_size > whole:
                os.truncate(path, whole)  # no half line stays where the disk is full
            raise

    def _rotate(self, path: Path) -> None:
        for number in range(self._num_files - 1, 0, -1):
            older = path if number == 1 else path.with_suffix(f".jsonl.{number - 1}")
            if older.exists():
                older.replace(path.with_suffix(f".jsonl.{number}"))
        path.unlink(missing_ok=True)


def line_of(tick: Tick, event: Event) -> LogLine:
    """One event with who told it."""
    source = tick.source
    moment = dt.datetime.fromtimestamp(event.at_s, dt.UTC)
    return LogLine(
        timestamp=moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        event=event.event,
        model=source.model,
        version=source.version,
        device=source.device,
        host=source.host,
        pid=source.pid,
        call=event.call,
        latency_s=event.latency_s,
        shape=event.shape,
        batch=event.batch,
        memory_bytes=event.memory_bytes,
        compilations=tick.counters.get("compilations", 0.0),
        graph_breaks=tick.counters.get("graph_breaks", 0.0),
        error=event.error,
        trace_id=event.trace_id,
        fields=event.fields,
    )


def prune(folder: Path, most: int) -> None:
    """Delete the oldest files of processes that are gone, until `most` are left."""
    files = sorted(folder.glob("*-*.jsonl*"), key=lambda file: file.stat().st_mtime)
    for file in files[: max(len(files) - most, 0)]:
        pid = file.name.partition("-")[2].partition(".")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            file.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
