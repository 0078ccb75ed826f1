"""Watching a program for memory that stays: for some steps, in windows of a long run, or as a contract in a test."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch

from pyrometer.bench.garbage import hiding, in_sight
from pyrometer.bench.memory import meter_for
from pyrometer.errors import BudgetExceededError, InputError, UsageError
from pyrometer.memory.leaks.answer import Stretch, WatchedSteps, grew_until, report_of
from pyrometer.memory.leaks.births import BirthRecorder, live_tensors
from pyrometer.memory.leaks.cohorts import ENOUGH_IN_WINDOWS, MIN_STEPS, Span, find_growth
from pyrometer.memory.leaks.levels import Levels
from pyrometer.memory.leaks.nodes import Census, count_nodes
from pyrometer.memory.leaks.schedule import FIRST_STRETCH, WARM_STEPS, Schedule
from pyrometer.memory.profile import LeakReport
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.call import Call
from pyrometer.workload.failure import user_code
from pyrometer.workload.workload import Workload

DEFAULT_STEPS = FIRST_STRETCH
NUM_SCANS = 15
"""Scans for tensors that no operator shows, over a watch of every step."""

_PARTS = ("model", "loss", "optimizer", "scheduler", "batches", "inputs", "function")

STEPS_PER_READING = 16
"""In a long run, from one reading of the process's memory to the next."""

MOST_RECORDED = 4000
"""Steps in windows that are remembered."""


def watch_memory(
    work: Workload | Callable[[], Any],
    *,
    steps: int = DEFAULT_STEPS,
    limit_bytes: Bytes | None = None,
    compiled: bool | None = None,
) -> LeakReport:
    """Run some steps and tell whether memory stays, who holds it, and when it is full.

    Every operator of the steps is seen, so that they take up to three times as long; results are the same. What the
    workload is made of is restored afterwards; what the user's own containers took up in the steps is theirs.

    Not seen: the steps of compiled code (see `compiled`), and what is no tensor.

    Args:
        work: a workload, or a function that runs one step.
        steps: how many to run; more than an epoch or the longest period of the program, at least 24.
        limit_bytes: memory that the process may use (on CUDA, its tensors), for the number of steps that are left; by
            default the device's, the control group's or the machine's.
        compiled: whether compiled code runs, which a dispatch mode would turn off; then tensors are looked for after the
            steps instead, and their lines are not known. By default a workload says it itself.

    Raises:
        InputError: too few steps, or a workload that cannot be prepared.
        UserProgramError: a step raised.

    >>> history = []
    >>> report = watch_memory(lambda: history.append(torch.ones(256) + 1), steps=30)
    >>> report.verdict, report.bytes_per_step
    ('leak', 1024.0)
    """
    if steps < 1:
        raise InputError(
            f"steps: got {steps}; at least {MIN_STEPS} tell a leak from a warm-up, 60 are a good choice"
        )
    if not isinstance(work, Workload):
        work = Call(work)
    if compiled is None:
        compiled = _is_compiled(work)
    with work.open() as session:
        session.activate()
        watch = MemoryWatch(
            every=steps,
            window=steps,
            limit_bytes=limit_bytes,
            device=session.device,
            operators=not compiled,
            names=users_objects(work),
        )
        with watch, user_code("the step"):
            for _ in range(steps):
                session.step(session.prepare())
                watch.step()
            return watch.report()


def assert_no_leak(
    work: Workload | Callable[[], Any], *, steps: int = DEFAULT_STEPS, allowed_bytes_per_step: float = 0.0
) -> LeakReport:
    """Fail where memory stays: a contract for tests.

    A cache that is bounded passes, and so does one that fills more and more slowly.

    Args:
        work: a workload, or a function that runs one step.
        steps: how many to run.
        allowed_bytes_per_step: growth that is all right.

    Raises:
        BudgetExceededError: a leak, or a cache without a bound; an `AssertionError` with the answer in one line.
        InputError: too few steps.
        UserProgramError: a step raised.

    >>> assert_no_leak(lambda: torch.ones(256) + 1).verdict
    'stable'
    """
    if steps < MIN_STEPS:
        raise InputError(
            f"steps: got {steps}; at least {MIN_STEPS} tell a leak from a warm-up, 60 are a good choice"
        )
    report = watch_memory(work, steps=steps)
    if report.unbounded and report.bytes_per_step >= allowed_bytes_per_step:
        raise BudgetExceededError(report.sentence)
    return report


class MemoryWatch:
    """Watches a loop that somebody else runs.

    ::

        with pm.MemoryWatch() as watch:
            for batch in loader:
                train(batch)
                watch.step()
        print(watch.report().sentence)

    The first sixty steps are watched one and all, and take up to three times as long: so many decide. After them, operators
    are only seen in windows, between which a step costs a few microseconds. What was made in a window and still lives long
    after it is what counts, so that windows may be short. Where code is compiled, let `operators` be false: in a
    window it would run without its compiled form.

    Args:
        every: steps from one window to the next, without the sixty to begin with; by default, as many as keep the cost
            below `max_overhead`. The same as `window`: every step is watched.
        window: steps per window.
        max_overhead: share of the time that watching may cost in a run that is long enough to make up for the first steps.
        limit_bytes: memory that the process may use (on CUDA, its tensors).
        device: whose memory is meant with it; also whose level is read between windows.
        operators: see every operator in windows; otherwise just which tensors live after them.
        names: what the user's objects are called, for holders below them that no variable of his leads to.
        clock: seconds; for tests.

    Raises:
        InputError: a window without steps, or longer than the distance to the next.
    """

    def __init__(
        self,
        *,
        every: int | None = None,
        window: int = 20,
        max_overhead: float = 0.03,
        limit_bytes: Bytes | None = None,
        device: torch.device | str | None = None,
        operators: bool = True,
        names: Mapping[str, Any] | None = None,
        clock: Callable[[], Seconds] = time.perf_counter,
    ) -> None:
        self._schedule = Schedule(every, window, max_overhead, clock)
        self._device = torch.device(device) if device is not None else _default_device()
        self._limit_bytes = limit_bytes
        self._operators = operators
        self._names = names or {}
        self._recorder = BirthRecorder()
        self._census: list[Census] = []
        self._recorded: list[int] = []
        self._live: list[tuple[int, Bytes]] = []
        self._levels = Levels(meter_for(self._device), 1 if self._schedule.always else STEPS_PER_READING)
        self._first: Stretch | None = None
        self._window = contextlib.ExitStack()
        self._hidden = contextlib.ExitStack()
        self._thread: int | None = None
        self._was_collecting = True

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        gc.collect()
        self._schedule.start()
        if self._schedule.opens_at_once:
            self._open_window()
        return self

    def __exit__(self, *exc: object) -> None:
        self._close_window()

    def step(self) -> None:
        """One step is over.

        Raises:
            UsageError: called outside of the `with` block, or from another thread than the one that entered it.
        """
        if threading.get_ident() != self._thread:
            raise UsageError(
                "MemoryWatch.step() was called outside of its `with` block, or from another thread; "
                "enter the block in the thread that runs the steps"
            )
        schedule = self._schedule
        schedule.step_ends()
        step = schedule.steps - 1
        self._levels.read(step)
        if schedule.is_open:
            self._step_in_window(step)
        else:
            self._recorder.step += 1
        if schedule.closes():
            if schedule.whole:
                self._remember_first(schedule.steps)
            self._close_window()
        elif schedule.opens():
            self._open_window()
        schedule.step_begins()

    def report(self) -> LeakReport:
        """What was found so far. Collects garbage, so that only what is held is counted.

        Raises:
            UsageError: the watch has not begun.
        """
        if self._thread is None:
            raise UsageError(
                "MemoryWatch.report() before any step; use it as `with MemoryWatch() as watch:` around a loop"
            )
        self._hidden.close()
        with self._paused():
            return contextvars.copy_context().run(_report_under_names, self._watched(), self._names)

    def grew_until_the_last_step(self) -> bool:
        """Whether something grew until the last step was over, though it may be gone by now: a script has ended since."""
        self._hidden.close()
        with self._paused():
            return bool(grew_until(self._watched()))

    def _watched(self) -> WatchedSteps:
        return WatchedSteps(
            recorder=self._recorder,
            span=self._span(),
            census=self._census,
            live=self._live,
            levels=self._levels,
            device=self._device,
            limit_bytes=self._limit_bytes,
            overhead_share=self._schedule.overhead_share,
            operators=self._operators,
            first=self._first,
            deciding_steps=self._deciding_steps,
        )

    def _span(self) -> Span:
        steps, schedule = self._schedule.steps, self._schedule
        if schedule.whole:
            return Span.of(steps)
        warm, lag = WARM_STEPS, schedule.window
        if schedule.first:
            warm, lag = Span.of(schedule.first).warm, min(lag, schedule.first // 3)
        return Span(tuple(self._recorded), steps, warm=warm, lag=lag)

    @property
    def _deciding_steps(self) -> int:
        schedule = self._schedule
        return MIN_STEPS if schedule.opens_at_once else schedule.steps_for(ENOUGH_IN_WINDOWS)

    def _remember_first(self, steps: int) -> None:
        """What came and went ever longer while every step was watched; from windows alone it cannot be seen."""
        births = [storage.birth for storage in self._recorder.grown]
        queued = [growth for growth in find_growth(births, Span.of(steps)) if growth.rule == "queued"]
        self._first = Stretch(steps, queued, self._recorder.live_bytes)

    def _step_in_window(self, step: int) -> None:
        recorder = self._recorder
        self._recorded.append(step)
        if self._scans_after(step):
            with self._paused():
                tensors = live_tensors()
                recorder.scan(tensors)
                self._census.append(Census(step, count_nodes(tensors)))
                del tensors
        recorder.end_step()
        self._live.append((step, recorder.live_bytes))

    def _scans_after(self, step: int) -> bool:
        """Scans take long: a few over a watch of every step, one at the end of a window."""
        schedule = self._schedule
        if schedule.always or (schedule.whole and self._operators):
            return step % max(1, (schedule.first or schedule.window) // NUM_SCANS) == 0 or schedule.closes()
        return schedule.closes() or not self._operators

    def _open_window(self) -> None:
        with in_sight():
            self._recorder.scan(live_tensors(), first=True)
        if not self._schedule.whole:
            self._forget_old()
        self._hidden.enter_context(hiding())  # scans meet what comes
        self._schedule.opened()
        self._resume()

    def _forget_old(self) -> None:
        """A run may go on for weeks."""
        self._recorder.forget_dead()
        for history in (self._recorded, self._live, self._census):
            del history[:-MOST_RECORDED]

    def _close_window(self) -> None:
        self._window.close()
        self._hidden.close()
        self._schedule.closed()

    def _resume(self) -> None:
        if self._operators:
            self._window.enter_context(self._recorder.recording())

    @contextlib.contextmanager
    def _paused(self) -> Any:
        """Our own work is not the program's."""
        self._window.close()
        try:
            yield
        finally:
            if self._schedule.is_open:
                self._resume()


def _is_compiled(work: Workload) -> bool:
    model = getattr(getattr(work, "parts", work), "model", None)
    return work.config.mode not in {None, "eager"} or (
        work.config.mode is None and hasattr(model, "_orig_mod")
    )


def _report_under_names(watched: WatchedSteps, names: Mapping[str, Any]) -> LeakReport:
    """The report, in a context whose variables are the user's objects: the search for holders begins there too."""
    for name in names:
        contextvars.ContextVar(name).set(
            names[name]
        )  # not by a variable: what our frames hold does not count
    return report_of(watched)


def users_objects(work: Workload) -> dict[str, Any]:
    """What a workload consists of, under the names of its arguments."""
    found = {name: getattr(work, name, getattr(getattr(work, "parts", None), name, None)) for name in _PARTS}
    owner = getattr(getattr(work, "function", None), "__self__", None)
    if owner is not None:  # of a bound method, whose state is what a step changes
        found[type(owner).__name__] = owner
    return {name: value for name, value in found.items() if value is not None}


def _default_device() -> torch.device:
    in_use = torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
    return torch.device("cuda" if in_use else "cpu")
