"""From torch's begin and end events to spans of time.

Every event bears the thread number 0, so that the thread of its entry counts. Ends come without a beginning (recording
began in between, or a restart cleared torch's own stack), and beginnings without an end (recording stopped, or the
program died); the first are left out, the second end with the last that was heard of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from pyrometer.compiler.collecting.entries import payload_json
from pyrometer.compiler.compile_id import CompileId, parse_compile_id
from pyrometer.compiler.costs.phase_names import ON_WORKERS
from pyrometer.compiler.log import CompileLog, LogEntry


class Lane(NamedTuple):
    """A thread; apart from it, work of compile threads, since a log read from a file does not tell threads."""

    thread: int
    is_worker: bool


@dataclass(slots=True)
class Span:
    """Something that was going on from one moment to another, in nanoseconds of the clock."""

    name: str
    compile_id: CompileId | None
    lane: Lane
    start_ns: int
    end_ns: int
    children: list[Span] = field(default_factory=list)

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns

    @property
    def own_ns(self) -> int:
        """How long it took without what happened inside of it."""
        return self.duration_ns - sum(child.duration_ns for child in self.children)


class _Event(NamedTuple):
    name: str
    begins: bool
    time_ns: int
    lane: Lane
    compile_id: CompileId | None


def read_flat_spans(log: CompileLog) -> list[Span]:
    """All spans of a log in the order in which they began, each for itself, without children."""
    spans: list[Span] = []
    open_spans: dict[Lane, list[Span]] = defaultdict(list)
    last_ns: dict[tuple[Lane, CompileId | None], int] = {}
    epoch = 0
    for entry in log.of("chromium_event"):
        epoch = entry.compile_id.epoch if entry.compile_id is not None else epoch
        event = _event(entry, epoch)
        if event is None:
            continue
        last_ns[event.lane, event.compile_id] = event.time_ns
        if event.begins:
            span = Span(event.name, event.compile_id, event.lane, event.time_ns, -1)
            open_spans[event.lane].append(span)
            spans.append(span)
        else:
            _end(event, open_spans)
    for span in spans:
        if span.end_ns < 0:
            span.end_ns = last_ns[span.lane, span.compile_id]
        span.end_ns = max(span.end_ns, span.start_ns)  # the clock may have been set back
    return spans


def nanoseconds(time_us: float) -> int:
    """Whole nanoseconds; a product of a time since 1970 would be rounded to 256 of them.

    >>> nanoseconds(1_700_000_000_000_001.25)
    1700000000000001250
    """
    whole_us = math.floor(time_us)
    return whole_us * 1000 + round((time_us - whole_us) * 1000)


def _end(event: _Event, open_spans: dict[Lane, list[Span]]) -> None:
    """End the span that an event means, and what was lost inside of it."""
    own = open_spans[event.lane]
    others = [spans for lane, spans in open_spans.items() if lane != event.lane]
    for spans, same_id in [(own, True), (own, False), *((spans, True) for spans in others)]:
        for at in reversed(range(len(spans))):
            span = spans[at]
            if span.name == event.name and (not same_id or span.compile_id == event.compile_id):
                for lost in [span, *(inner for inner in spans[at:] if inner.compile_id == span.compile_id)]:
                    lost.end_ns = event.time_ns
                spans[at:] = [inner for inner in spans[at:] if inner.end_ns < 0]
                return


def _event(entry: LogEntry, epoch: int) -> _Event | None:
    event = payload_json(entry)
    if not isinstance(event, dict) or event.get("ph") not in ("B", "E"):
        return None
    name, time_us, args = event.get("name"), event.get("ts"), event.get("args")
    if not isinstance(name, str) or not isinstance(time_us, (int, float)) or not abs(time_us) < 1e16:
        return None
    text = str(args.get("compile_id")) if isinstance(args, dict) else ""
    own = entry.compile_id or parse_compile_id(text, epoch)
    lane = Lane(entry.thread, own is None and name in ON_WORKERS)
    return _Event(name, event["ph"] == "B", nanoseconds(time_us), lane, own)
