"""Writing a log as torch does under `TORCH_TRACE`, so that tlparse reads it and users can hand it to torch's developers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pyrometer.compiler.log import PROBES, CompileLog, LogEntry
from pyrometer.errors import InputError
from pyrometer.files import replacing

PREFIX = "dedicated_log_torch_trace_"


def export_log(log: CompileLog, folder: str | Path) -> Path:
    """Write a log into a folder, for `tlparse FOLDER/FILE`.

    It holds source text, file names and generated code of the program, but no weights.

    Returns:
        The file.

    Raises:
        InputError: the folder cannot be written to.
    """
    ranks = {entry.rank for entry in log.entries if entry.rank is not None}
    rank = f"rank_{min(ranks)}_" if ranks else ""
    path = Path(folder) / f"{PREFIX}{rank}pyrometer.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside, beside.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in trace_lines(log))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; name a folder that can") from error
    return path


def trace_lines(log: CompileLog) -> Iterator[str]:
    """The lines of such a file, without line ends: entries, and the names of files before their first use."""
    names: dict[str, int] = {}
    version = next(log.of("torch_version"), None)
    if version is None and log.torch_version:
        first = log.entries[0].time_ns if log.entries else 0
        yield from _lines(
            {"artifact": {"name": "torch_version", "encoding": "json"}},
            json.dumps({"pytorch_version": log.torch_version}),
            first,
        )
    for entry in log.entries:
        if entry.kind.startswith(PROBES):  # nobody else could read them
            continue
        known = len(names)
        metadata = _metadata(entry, names)
        for name, number in list(names.items())[known:]:
            yield from _lines({"str": [name, number]}, "", entry.time_ns)
        yield from _lines(metadata, entry.payload, entry.time_ns)


def _metadata(entry: LogEntry, names: dict[str, int]) -> dict[str, Any]:
    content = _numbered(entry.metadata, names)
    is_artifact = isinstance(content, dict) and content.get("name") == entry.kind and "encoding" in content
    metadata: dict[str, Any] = {"artifact" if is_artifact else entry.kind: content}
    if entry.rank is not None:
        metadata["rank"] = entry.rank
    own = entry.compile_id
    if own is not None:
        ids = {"compiled_autograd_id": own.autograd, "frame_id": own.frame, "frame_compile_id": own.compile}
        metadata |= {key: value for key, value in ids.items() if value is not None}
        metadata["attempt"] = entry.attempt
    if entry.stack:
        metadata["stack"] = _numbered(list(entry.stack), names)
    if entry.payload:
        metadata["has_payload"] = hashlib.md5(entry.payload.encode(), usedforsecurity=False).hexdigest()
    return metadata


def _numbered(content: Any, names: dict[str, int]) -> Any:
    """The same with numbers in place of the names of files, as stacks are written."""
    if isinstance(content, dict):
        is_frame = "filename" in content and "line" in content
        return {
            key: names.setdefault(value, len(names))
            if is_frame and key == "filename"
            else _numbered(value, names)
            for key, value in content.items()
        }
    if isinstance(content, (list, tuple)):
        return [_numbered(value, names) for value in content]
    return content


def _lines(metadata: dict[str, Any], payload: str, time_ns: int) -> Iterator[str]:
    moment = datetime.fromtimestamp(time_ns // 1000 / 1e6).astimezone()
    head = f"V{moment:%m%d %H:%M:%S.%f} {os.getpid()} pyrometer/compiler/collecting/export.py:1]"
    yield f"{head} {json.dumps(metadata, default=repr)}"
    if payload:
        yield "\n".join(f"\t{line}" for line in payload.split("\n"))
