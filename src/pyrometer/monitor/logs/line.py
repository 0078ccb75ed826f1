"""One line of a structured log: the schema that the monitor writes and `pyrometer monitor analyze` reads.

History of `schema_version`: 1 is the first. Keys are only added; a reader passes over what it does not know.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from pyrometer.monitor.tick import Event, Source
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class LogLine(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One event, as one line of JSON."""

    timestamp: Annotated[str, doc("RFC 3339 in UTC, with microseconds: 2026-11-28T01:02:03.000004Z")]
    event: Annotated[str, doc("sample, error, slow, recompile, graph_break, alarm, or what else happened")]
    model: str = ""
    version: str = ""
    device: str = ""
    host: str = ""
    pid: int = 0
    call: Annotated[str, doc("name of the watched function")] = ""
    shape: Annotated[str, doc("of the tensors among the arguments: 8x3x224x224,8")] = ""
    batch: int | None = None
    latency_s: Seconds | None = None
    memory_bytes: Bytes | None = None
    compile_status: Annotated[str, doc("eager, compiled, or recompiled by this call")] = ""
    graph_breaks: Annotated[int | None, doc("of the code that ran")] = None
    error: Annotated[str, doc("type of the exception, and its message where that is logged")] = ""
    trace_id: str = ""
    fields: Annotated[dict[str, Any], doc("what the user or a detector added")] = {}


def line_of(source: Source, event: Event) -> LogLine:
    """An event of a process as a line; `compile_status` and `graph_breaks` come from its fields."""
    fields = dict(event.fields)
    breaks = fields.pop("graph_breaks", None)
    return LogLine(
        timestamp=stamp(event.at_s),
        event=event.event,
        model=source.model,
        version=source.version,
        device=source.device,
        host=source.host,
        pid=source.pid,
        call=event.call,
        shape=event.shape,
        batch=event.batch,
        latency_s=event.latency_s,
        memory_bytes=event.memory_bytes,
        compile_status=str(fields.pop("compile_status", "")),
        graph_breaks=None if breaks is None else int(breaks),
        error=event.error,
        trace_id=event.trace_id,
        fields=fields | source.labels,
    )


def encode(line: LogLine) -> bytes:
    """A line with its end, ready to be appended to a file."""
    return msgspec.json.encode(line) + b"\n"


def stamp(at_s: Seconds) -> str:
    """A Unix time as lines have it.

    >>> stamp(1.5)
    '1970-01-01T00:00:01.500000Z'
    """
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
