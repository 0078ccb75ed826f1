"""Automatic diagnosis: an alarm begins, and what explains it becomes a run of the store that `pyrometer show` opens.

Of it are the trace of the next requests, with what the rules say of it, the stacks of all threads, the recent calls, compilations since the
start, the allocator's snapshot and the environment. All of it is done by a thread of its own, within `Limits`.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.of_trace import evidence_of_trace
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.record import Environment
from pyrometer.monitor.detecting.listener import Notice
from pyrometer.monitor.diagnosing.collecting import (
    memory_snapshot,
    record_requests,
    thread_stacks,
    warm_profiler,
)
from pyrometer.monitor.diagnosing.limits import Allowance, Limits
from pyrometer.monitor.tick import Event, Tick
from pyrometer.quantity import Seconds
from pyrometer.record import to_dict
from pyrometer.rules.explain import explain
from pyrometer.store.saving import save_result
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.reporting.job_report import report_trace

SCHEMA_VERSION = 2
"""Of the document, as `pyrometer trace` prints it."""

MOST_RECENT = 500
COMPILING = ("compilations", "recompilations", "graph_breaks")


class Diagnoser:
    """A listener of the monitor that is told of notices, and collects.

    Args:
        store: folder of the store.
        limits: what it may cost.
        target: name under which runs are listed.
        saved: is told the id of each run, and of what alarm.
        clock: Unix time.
    """

    def __init__(
        self,
        store: str | Path,
        limits: Limits | None = None,
        target: str = "production",
        saved: Callable[[str, str], None] = lambda _run, _alarm: None,
        clock: Callable[[], Seconds] = time.time,
    ) -> None:
        self._store, self._target, self._saved, self._clock = store, target, saved, clock
        self.limits = limits or Limits()
        self._allowance = Allowance(self.limits)
        self._recent: deque[Event] = deque(maxlen=MOST_RECENT)
        self._compiled: Counter[str] = Counter()
        self._environment: Environment | None = None
        self._lock = threading.Lock()
        self._counted = threading.Condition()
        self._requests = 0
        self._thread: threading.Thread | None = None
        self.refused: deque[str] = deque(maxlen=20)
        self.runs: deque[str] = deque(maxlen=100)
        self.faults: deque[str] = deque(maxlen=20)

    def start(self) -> None:
        """Warm the profiler and read the environment, before the first request: both take seconds."""
        missing = warm_profiler()
        if missing is not None:
            self.faults.append(f"no traces: {missing}")
        self._environment = read_environment()

    def samples(self, _call: str, _at_s: Seconds, latencies_s: Sequence[float], /) -> None:
        """Count requests, for the trace that is being taken."""
        with self._counted:
            self._requests += len(latencies_s)
            self._counted.notify_all()

    def tick(self, tick: Tick, /) -> Sequence[Event]:
        """Keep the recent calls, and count compilations."""
        self._recent.extend(tick.events)
        self._compiled.update({name: int(tick.counters[name]) for name in COMPILING if name in tick.counters})
        return ()

    def alarms(self) -> Sequence[str]:
        """None of its own."""
        return ()

    def __call__(self, notice: Notice) -> None:
        """An alarm began or ended; collects in the background what the limits allow."""
        if not notice.change.firing:
            return
        now_s = self._clock()
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            refusal = "one is being made" if busy else self._allowance.refusal(now_s)
            if refusal is not None:
                self.refused.append(f"{notice.name}: {refusal}")
                return
            self._allowance.take(now_s)
            self._thread = threading.Thread(
                target=self._collect, args=(notice,), name="pyrometer-diagnosis", daemon=True
            )
            self._thread.start()

    def wait(self, timeout_s: Seconds) -> bool:
        """Wait until nothing is being collected; false where that takes longer."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        return thread is None or not thread.is_alive()

    def _collect(self, notice: Notice) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
                self._save(notice, Path(folder) / "trace.json")
        except Exception as error:  # noqa: BLE001 - a full disk or a locked store: the program runs on
            self.faults.append(f"{notice.name}: {type(error).__name__}: {error}")

    def _save(self, notice: Notice, trace: Path) -> None:
        stacks = thread_stacks(threading.get_ident())  # first: they are where the problem is
        files: dict[str, bytes | Path] = {"stacks.txt": stacks.encode("utf-8", "replace")}
        files["alert.json"] = msgspec.json.encode(notice.event())
        notes = [f"collected on {notice.name}: {notice.change.reading.evidence}"]
        self._trace(trace, files, notes)
        files["recent.json"] = msgspec.json.encode(list(self._recent))
        files["compilations.json"] = msgspec.json.encode(dict(self._compiled))
        snapshot = self._guarded(notes, "memory snapshot", lambda: memory_snapshot(self.limits.trace_bytes))
        if snapshot is not None:
            files["memory.pickle"] = snapshot
        environment = self._environment or read_environment()
        target = f"{self._target}: {notice.name}"
        evidence = self._evidence(trace if "trace.json" in files else None, environment, target, notes)
        document = {
            "schema_version": SCHEMA_VERSION,
            "evidence": to_dict(evidence),
            "diagnosis": to_dict(explain(evidence, ())),
        }
        run = save_result(
            self._store,
            document,
            kind="trace",
            target=target,
            environment=environment,
            command=["pyrometer", "monitor"],
            artifacts=files,
        ).run
        self._allowance.bytes_kept += sum(artifact.size_bytes for artifact in run.artifacts)
        self.runs.append(run.id)
        self._saved(run.id, notice.name)

    def _trace(self, trace: Path, files: dict[str, bytes | Path], notes: list[str]) -> None:
        missing = self._guarded(
            notes, "trace", lambda: record_requests(trace, self._enough, self.limits.longest_s)
        )
        if missing is not None:
            notes.append(missing)
        if not trace.exists():
            return
        size = trace.stat().st_size
        if size > self.limits.trace_bytes:
            notes.append(
                f"the trace has {size:,} bytes, {self.limits.trace_bytes:,} are allowed, and was not kept"
            )
        else:
            files["trace.json"] = trace

    def _enough(self, longest_s: Seconds) -> bool:
        """Wait for the next requests; false where fewer came in the time."""
        with self._counted:
            wanted = self._requests + self.limits.requests
            return self._counted.wait_for(lambda: self._requests >= wanted, longest_s)

    def _evidence(
        self, trace: Path | None, environment: Environment, target: str, notes: list[str]
    ) -> Evidence:
        if trace is not None:
            found = self._guarded(
                notes,
                "trace",
                lambda: evidence_of_trace(
                    target, report_trace(read_trace(trace)), environment=environment, notes=notes
                ),
            )
            if isinstance(found, Evidence):
                return found
        return Evidence(target=target, environment=environment, notes=notes)

    def _guarded(self, notes: list[str], what: str, collect: Callable[[], Any]) -> Any:
        """One part, or `None` and a note where it fails."""
        try:
            return collect()
        except Exception as error:  # noqa: BLE001 - of torch, and of files that it wrote
            notes.append(f"no {what}: {type(error).__name__}: {error}")
            return None
