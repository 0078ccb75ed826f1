"""Recording some steps of a running process, from the thread that makes the steps.

A step ends where an optimizer's step does, or else where the outermost `pm.span` is left. The thread in which that
happens first is the one that is recorded: it starts and stops the profiler itself, between two steps.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.trace.capture.rendezvous import TraceAnswer, TraceOrder
from pyrometer.trace.span import watch_spans
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler, quiet, steps_schedule

MOST_BARE_STEPS = 5
OPTIMIZER, SPAN = "optimizer steps", "spans"


class StepCapture:
    """One order, carried out by the thread whose steps end, while the thread that took the order waits."""

    def __init__(self, torch: Any, order: TraceOrder) -> None:
        assert order.steps is not None
        self._torch = torch
        self._order = order
        self._num_steps = order.steps
        self._num_bare = min(order.steps, MOST_BARE_STEPS)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._depth = threading.local()
        self._source: tuple[str, Any] | None = None  # what a step is taken to be, and whose
        self._thread: int | None = None
        self._begun_s: Seconds | None = None  # when the step that is under way began
        self._steps_s: list[Seconds] = []
        self._hook: Any = None
        self._profiler: Any = None
        self._missing: list[str] = []
        self._error: Exception | None = None

    def run(self) -> tuple[TraceAnswer, Any]:
        """Wait for the steps, and give what was recorded with the profiler that holds it.

        Raises:
            InputError: no step ends, or fewer than asked for.
        """
        if self._num_steps < 1:
            raise InputError(f"steps: got {self._num_steps}; it must be at least 1")
        optimizers = sys.modules["torch.optim.optimizer"]
        self._hook = optimizers.register_optimizer_step_post_hook(self._optimizer_stepped)
        watch_spans(self)
        self._wait()
        with self._lock:
            if self._thread is None or self._profiler is None:
                self._leave()
        if self._error is not None:
            raise self._error
        answer = TraceAnswer(
            steps_from=self._source[0] if self._source else None,
            untraced_s=self._steps_s[: self._num_bare],
            traced_s=self._steps_s[self._num_bare + 1 :],  # one step warms the profiler up
            notes=[f"this torch cannot record {name}" for name in self._missing],
        )
        return answer, self._profiler

    def span_began(self) -> None:
        """A span was entered, on this thread."""
        self._depth.now = getattr(self._depth, "now", 0) + 1

    def span_ended(self, name: str) -> None:
        """A span was left; the outermost one ends a step, also one that began before we looked."""
        depth = getattr(self._depth, "now", 0)
        self._depth.now = max(0, depth - 1)
        if depth <= 1:
            self._boundary(SPAN, name, outer=depth == 0)

    def _optimizer_stepped(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self._torch.compiler.is_compiling():
            self._boundary(OPTIMIZER, id(optimizer), outer=False)

    def _wait(self) -> None:
        """Until all is recorded, or nothing has happened for too long."""
        seen: tuple[Any, int] | None = None
        while not self._done.wait(self._order.patience_s):
            with self._lock:
                now = (self._source, len(self._steps_s))
                if now != seen and self._source is not None:
                    seen = now
                    continue
                self._error = InputError(self._nothing_happened())
                self._done.set()

    def _nothing_happened(self) -> str:
        waited = f"{self._order.patience_s:g} s"
        if self._source is None:
            return (
                f"no optimizer stepped and no pm.span ended within {waited}; ask for a time instead of steps"
            )
        return f"after {len(self._steps_s)} steps none ended within {waited}; ask for a time instead of steps"

    def _boundary(self, source: str, who: Any, *, outer: bool) -> None:
        """A step may end here. Nothing that fails here reaches the program."""
        with self._lock:
            try:
                if self._is_step(source, who, outer=outer):
                    self._next_step()
                if self._done.is_set() and self._profiler is not None and self._is_ours():
                    self._stop()
            except Exception as error:  # noqa: BLE001 - whoever asked is told
                self._error = error
                self._done.set()

    def _is_step(self, source: str, who: Any, *, outer: bool) -> bool:
        if self._done.is_set():
            return False
        better = self._source is None or (source == OPTIMIZER and self._source[0] == SPAN) or outer
        if better and self._source != (source, who) and self._profiler is None:
            self._source, self._thread = (source, who), threading.get_ident()
            self._begun_s, self._steps_s = None, []
        return self._source == (source, who) and self._is_ours()

    def _is_ours(self) -> bool:
        return threading.get_ident() == self._thread

    def _next_step(self) -> None:
        now = time.perf_counter()
        if self._begun_s is not None:
            self._steps_s.append(now - self._begun_s)
        count = len(self._steps_s)
        if count == self._num_bare:
            self._start()
        elif count > self._num_bare:
            with quiet():
                self._profiler.step()
        if count == self._num_bare + 1 + self._num_steps:
            self._done.set()
        self._begun_s = time.perf_counter()

    def _start(self) -> None:
        self._profiler, self._missing = new_profiler(
            self._torch,
            self._order.options,
            schedule=steps_schedule(self._torch, warmup=1, active=self._num_steps),
        )
        with quiet():
            self._profiler.start()

    def _stop(self) -> None:
        """End the profiler in the thread that started it; also when nobody waits for it any more."""
        self._thread = None
        with quiet():
            self._profiler.stop()
        self._leave()

    def _leave(self) -> None:
        watch_spans(None)
        self._hook.remove()
