"""Reading the files that torch leaves under `TORCH_TRACE`: one per process, the same entries that a handler gets.

A line is `V1121 16:46:42.590000 31794 torch/_dynamo/utils.py:2350] {json}`, its payload follows on lines that begin with
a tab. The format is torch's contract with tlparse.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pyrometer.compiler.collecting.entries import entry_of, payload_json, with_epochs
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.errors import InputError

_HEAD = re.compile(
    r"(?:\[rank\d+\]:)?[VIWEC](?P<date>\d{4} \d\d:\d\d:\d\d\.\d{6}) (?P<process>\d+) [^\]]*?:\d+\] (?P<rest>\{.*)"
)
SUFFIXES = (".log", ".log.gz", ".txt")
NOT_IN_FILES = ("which thread of the compiler did what: files do not say",)


def read_logs(path: str | Path) -> list[CompileLog]:
    """Read one file, or every log of a folder: one per process, those with a rank by rank.

    Damaged lines are left out and counted in `num_faults`.

    Args:
        path: a file, plain or gzip, or the folder that `TORCH_TRACE` named.

    Raises:
        InputError: there is no such file, it cannot be read, or it holds no entry of torch's structured trace.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file; name a log that TORCH_TRACE=DIR left, or that folder")
    files = (
        sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES)) if path.is_dir() else [path]
    )
    logs = [log for log in map(_read_file, files) if log.entries]
    if not logs:
        what = f"its {len(files)} logs hold" if path.is_dir() and files else "it holds"
        raise InputError(
            f"{path}: {what} no entry of torch's structured trace; record one with TORCH_TRACE=DIR"
        )
    return sorted(logs, key=lambda log: (rank_of(log) is None, rank_of(log) or 0))


def rank_of(log: CompileLog) -> int | None:
    """The rank of the process; `None` when it was not part of a job."""
    return next((entry.rank for entry in reversed(log.entries) if entry.rank is not None), None)


def _read_file(file: Path) -> CompileLog:
    try:
        year = datetime.fromtimestamp(file.stat().st_mtime, tz=UTC).year
        with _opened(file) as stream:
            entries, faults = _read_stream(stream, year)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error
    version = next((payload_json(entry) for entry in entries if entry.kind == "torch_version"), None)
    return CompileLog(
        with_epochs(entries),
        torch_version=str(version.get("pytorch_version", "")) if isinstance(version, dict) else "",
        source=str(file),
        num_faults=faults,
        unavailable=NOT_IN_FILES,
    )


def _read_stream(stream: IO[str], year: int) -> tuple[list[LogEntry], int]:
    """The entries of a file, and how many stretches of it could not be read."""
    entries, names, faults = list[LogEntry](), dict[int, str](), 0
    for head, payload in _records(stream):
        try:
            entry = None if head is None else _entry(head, payload, names, year)
        except (ValueError, TypeError, AttributeError):  # damaged, or of a shape that we do not know
            faults += 1
            continue
        faults += head is None
        if entry is not None:
            entries.append(entry)
    return entries, faults


def _entry(head: re.Match[str], payload: str, names: dict[int, str], year: int) -> LogEntry | None:
    """An entry; `None` where it only names a file."""
    metadata = json.loads(head["rest"])
    if "str" in metadata:
        name, number = metadata["str"]
        names[int(number)] = str(name)
        return None
    return entry_of(metadata, payload, time_ns=_time_ns(head["date"], year), thread=0, files=names)


def _time_ns(date: str, year: int) -> int:
    moment = datetime.strptime(f"{year}{date}", "%Y%m%d %H:%M:%S.%f").astimezone()
    return int(moment.timestamp() * 1e9)


def _opened(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8", errors="replace")
    return file.open(encoding="utf-8", errors="replace")


def _records(stream: IO[str]) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Heads with their payloads; `None` for a line that is neither, once for each such stretch."""
    head, payload, strange = None, list[str](), False
    for line in stream:
        text = line.rstrip("\n")
        if text.startswith("\t"):
            payload.append(text[1:])
            continue
        match = _HEAD.match(text)
        if match is None:
            if text.strip() and not strange:
                strange = True
                yield None, ""
            continue
        if head is not None:
            yield head, "\n".join(payload)
        head, payload, strange = match, [], False
    if head is not None:
        yield head, "\n".join(payload)
