"""From torch's records to entries of a log: the kind, the compilation, stacks with file names; resets told apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import LogEntry
from pyrometer.compiler.private.trace_log import CONTEXT

FRAME_SPANS = ('"name": "dynamo"', '"name": "entire_frame_compile"')
"""What the payloads of the events hold with which the compilation of a frame begins, and ends."""


def entry_of(
    metadata: Mapping[str, Any],
    payload: str,
    *,
    time_ns: int,
    thread: int,
    files: Mapping[int, str],
) -> LogEntry | None:
    """One entry; `None` for a record that says nothing (an interned file name, or context alone).

    Args:
        metadata: of the record.
        payload: its text.
        time_ns: when it was made.
        thread: which made it.
        files: file names by the numbers that stand for them in stacks.
    """
    kind = next((key for key in metadata if key not in CONTEXT), None)
    if kind is None or kind == "str":
        return None
    content = _named(metadata[kind], files)
    if kind == "artifact" and isinstance(content, dict):
        kind = str(content.get("name", kind))
    stack = _named(metadata.get("stack"), files)
    return LogEntry(
        kind=kind,
        metadata=content,
        payload=payload,
        compile_id=_compile_id(metadata),
        attempt=int(metadata.get("attempt") or 0),
        time_ns=time_ns,
        thread=thread,
        rank=metadata.get("rank"),
        stack=tuple(stack) if isinstance(stack, list) else (),
    )


def with_epochs(entries: Iterable[LogEntry]) -> tuple[LogEntry, ...]:
    """Tell apart compilations that bear the same id because of a `torch._dynamo.reset()` between them.

    A compilation that begins although one of its id had ended lies behind a reset.
    """
    epoch, ended, found = 0, set[CompileId](), list[LogEntry]()
    for entry in entries:
        own = entry.compile_id
        if own is not None and own in ended and _begins(entry):
            epoch, ended = epoch + 1, set()
        if own is not None and entry.kind == "compilation_metrics":
            ended.add(own)
        found.append(
            entry if own is None or not epoch else replace(entry, compile_id=own._replace(epoch=epoch))
        )
    return tuple(found)


def payload_json(entry: LogEntry) -> Any:
    """The payload of an entry as JSON; as text where it is none.

    >>> payload_json(LogEntry("recompile_reasons", {}, "0/0: size mismatch"))
    '0/0: size mismatch'
    """
    try:
        return json.loads(entry.payload)
    except json.JSONDecodeError:
        return entry.payload


def _begins(entry: LogEntry) -> bool:
    if entry.kind == "dynamo_start":
        return entry.attempt == 0
    return (
        entry.kind == "chromium_event"
        and '"ph": "B"' in entry.payload
        and any(name in entry.payload for name in FRAME_SPANS)
    )


def _compile_id(metadata: Mapping[str, Any]) -> CompileId | None:
    autograd, frame = metadata.get("compiled_autograd_id"), metadata.get("frame_id")
    if autograd is None and frame is None:
        return None
    return CompileId(0, autograd, frame, metadata.get("frame_compile_id"))


def _named(content: Any, files: Mapping[int, str]) -> Any:
    """The same with names in place of the numbers of files, at any depth."""
    if isinstance(content, dict):
        return {
            key: files.get(value, f"<file {value}>")
            if key == "filename" and isinstance(value, int)
            else _named(value, files)
            for key, value in content.items()
        }
    if isinstance(content, Sequence) and not isinstance(content, (str, bytes)):
        return [_named(value, files) for value in content]
    return content
