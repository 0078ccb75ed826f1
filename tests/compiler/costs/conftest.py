"""Logs with known truth: built by hand, and recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyrometer.compiler.compile_id import CompileId, parse_compile_id
from pyrometer.compiler.log import CompileLog, LogEntry

LOGS = Path(__file__).with_name("logs")
FRAME, BACKWARD = "entire_frame_compile", "entire_backward_compile"


@dataclass
class LogBuilder:
    """Writes entries as torch does; times are in seconds after an arbitrary moment."""

    entries: list[LogEntry] = field(default_factory=list)
    zero_s: float = 1_700_000_000.0

    def event(
        self, phase: str, name: str, at_s: float, compile_id: str = "0/0", thread: int = 1
    ) -> LogBuilder:
        event = {
            "name": name,
            "ts": (self.zero_s + at_s) * 1e6,
            "ph": phase,
            "tid": 0,
            "pid": 0,
            "args": {"compile_id": compile_id},
        }
        return self.add(
            "chromium_event", {}, json.dumps(event), at_s=at_s, compile_id=compile_id, thread=thread
        )

    def begin(self, name: str, at_s: float, **where: Any) -> LogBuilder:
        return self.event("B", name, at_s, **where)

    def end(self, name: str, at_s: float, **where: Any) -> LogBuilder:
        return self.event("E", name, at_s, **where)

    def span(self, name: str, start_s: float, end_s: float, **where: Any) -> LogBuilder:
        """Begin and end; the events of several spans are put in the order of time when the log is asked for."""
        return self.begin(name, start_s, **where).end(name, end_s, **where)

    def metrics(
        self,
        start_s: float,
        end_s: float,
        *,
        kind: str = "compilation_metrics",
        compile_id: str = "0/0",
        **told: Any,
    ) -> LogBuilder:
        content = {
            "start_time_us": int((self.zero_s + start_s) * 1e6),
            "duration_us": int((end_s - start_s) * 1e6),
            **told,
        }
        return self.add(kind, content, at_s=end_s, compile_id=compile_id)

    def artifact(self, kind: str, content: Any, compile_id: str = "0/0", at_s: float = 0.0) -> LogBuilder:
        payload = content if isinstance(content, str) else json.dumps(content)
        return self.add(kind, {"name": kind, "encoding": "json"}, payload, compile_id=compile_id, at_s=at_s)

    def add(
        self,
        kind: str,
        metadata: Any,
        payload: str = "",
        *,
        compile_id: str | CompileId = "0/0",
        at_s: float = 0.0,
        thread: int = 1,
        attempt: int = 0,
    ) -> LogBuilder:
        own = parse_compile_id(compile_id) if isinstance(compile_id, str) else compile_id
        time_ns = int((self.zero_s + at_s) * 1e9)
        self.entries.append(LogEntry(kind, metadata, payload, own, attempt, time_ns, thread))
        return self

    def log(self) -> CompileLog:
        """In the order in which entries were added."""
        return CompileLog(tuple(self.entries))

    def in_time(self) -> CompileLog:
        """In the order of time; of what is at once, ends come last to first and beginnings first to last."""
        numbered = enumerate(self.entries)
        return CompileLog(tuple(entry for _, entry in sorted(numbered, key=lambda item: item[1].time_ns)))


@pytest.fixture
def build() -> LogBuilder:
    return LogBuilder()


def read_recorded(file: Path) -> tuple[CompileLog, dict[str, Any]]:
    """A log that `record_logs.py` wrote, and what torch itself says of the same run."""
    document = json.loads(gzip.decompress(file.read_bytes()))
    entries = tuple(
        LogEntry(
            **{
                **entry,
                "compile_id": None if entry["compile_id"] is None else CompileId(*entry["compile_id"]),
            }
        )
        for entry in document.pop("entries")
    )
    return CompileLog(entries, torch_version=document["torch"], counters=document["counters"]), document


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], tuple[CompileLog, dict[str, Any]]]:
    return lambda name: read_recorded(LOGS / f"{name}.json.gz")


@pytest.fixture(scope="session")
def read_log() -> Callable[[Path], tuple[CompileLog, dict[str, Any]]]:
    return read_recorded
