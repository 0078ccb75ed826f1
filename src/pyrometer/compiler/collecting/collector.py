"""Recording the compiler in this process.

A handler on torch's trace logger costs nothing while nothing is compiled. It never raises: an exception out of it would end
the user's compilation. What it cannot take is counted and told.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple

import torch

from pyrometer.compiler.collecting.entries import entry_of, with_epochs
from pyrometer.compiler.compile_id import parse_compile_id
from pyrometer.compiler.log import PROBES, CompileLog, LogEntry
from pyrometer.compiler.private import trace_log


class _Raw(NamedTuple):
    """What the handler keeps; turned into an entry when the log is asked for."""

    metadata: dict[str, Any]
    payload: str
    time_ns: int
    thread: int


class _Handler(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.taken: list[_Raw | LogEntry] = []
        self.faults = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._take(record)
        except Exception:  # noqa: BLE001 - it would end the user's compilation
            self.faults += 1

    def _take(self, record: Any) -> None:
        payload, metadata = record.payload, dict(record.metadata)
        if "dynamo_start" in metadata:
            metadata.setdefault("stack", _callers())
        self.taken.append(
            _Raw(
                metadata,
                payload if isinstance(payload, str) else "" if payload is None else str(payload),
                int(record.created * 1e9),
                record.thread or 0,
            )
        )


def _callers() -> list[dict[str, Any]]:
    """Who is running on this thread, the innermost last; torch leaves the innermost callers of a frame out of its own."""
    found = list[dict[str, Any]]()
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to the callers without their source
    while frame is not None:
        code = frame.f_code
        found.append({"filename": code.co_filename, "line": frame.f_lineno or 0, "name": code.co_name})
        frame = frame.f_back
    return found[::-1]


class Collector:
    """Records while its `collect` lasts; `log` may be asked for at any time."""

    def __init__(self) -> None:
        self.unavailable: list[str] = []
        self._handler = _Handler()
        self._counters = trace_log.counters()
        self._grown: dict[str, int] | None = None

    def log(self) -> CompileLog:
        """Everything so far."""
        files = trace_log.interned_files()
        made, faults = [], self._handler.faults
        for raw in list(self._handler.taken):
            if isinstance(raw, LogEntry):
                made.append(raw)
                continue
            try:
                entry = entry_of(
                    raw.metadata, raw.payload, time_ns=raw.time_ns, thread=raw.thread, files=files
                )
            except (TypeError, ValueError, AttributeError):  # an entry of a shape that we do not know
                faults += 1
                continue
            if entry is not None:
                made.append(entry)
        return CompileLog(
            with_epochs(made),
            torch_version=torch.__version__,
            num_faults=faults,
            unavailable=tuple(self.unavailable),
            counters=self._counter_growth() if self._grown is None else self._grown,
        )

    def emit(self, kind: str, content: Any) -> None:
        """Add an entry of a probe of ours, to the compilation that is under way on this thread."""
        found = trace_log.current_compile_id()
        self._handler.taken.append(
            LogEntry(
                kind=f"{PROBES}{kind}",
                metadata=content,
                compile_id=None if found is None else parse_compile_id(found),
                time_ns=time.time_ns(),
                thread=get_ident(),
            )
        )

    def _counter_growth(self) -> dict[str, int]:
        return {
            name: count - self._counters.get(name, 0)
            for name, count in trace_log.counters().items()
            if count > self._counters.get(name, 0)
        }


@contextlib.contextmanager
def collect() -> Iterator[Collector]:
    """Record what the compiler says of itself; torch's loggers are as before at the end.

    >>> with collect() as collector:
    ...     torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist()
    [2.0, 2.0]
    >>> sum(1 for _ in collector.log().of("dynamo_output_graph"))
    1
    """
    collector = Collector()
    logger = trace_log.logger()
    collector.unavailable += trace_log.missing()
    if logger is None:
        yield collector
        return
    logger.addHandler(collector._handler)  # noqa: SLF001 - its own context manager
    try:
        yield collector
    finally:
        logger.removeHandler(collector._handler)  # noqa: SLF001
        collector._grown = collector._counter_growth()  # noqa: SLF001
