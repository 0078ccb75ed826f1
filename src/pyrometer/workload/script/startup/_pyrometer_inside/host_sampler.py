"""Looks at where a thread is, about a thousand times a second, and remembers nothing but where.

A timer interrupts the thread. Python runs the handler of a signal only between instructions, at calls and at the ends of loops,
so that what takes long without a call is seen at the next call: `host_watch` learns what lies before each of these. Each look
counts for the ticks of the timer since the last one, so that what holds the interpreter for long, such as a regular expression
or `fsync`, weighs what it takes.

Where the timer is in use, or away from the main thread, a thread of its own looks: it sees what lets go of the interpreter more
often than what holds it.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from time import perf_counter_ns, sleep, thread_time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

DEEPEST = 120
"""Frames of a stack that are kept, from the innermost."""

DEEPEST_OF_OTHERS = 40
"""The same of other threads."""

WAITING_FILES = ("/threading.py", "/queue.py", "/concurrent/futures/_base.py")
"""In which a thread waits for another."""

WAITS_NS = 2_700_000
"""Between looks at the others; no multiple of what programs wait."""

_signal = signal.signal
_count_threads = threading.active_count
_setitimer: Any = getattr(signal, "setitimer", None)
GOLDEN = 0.6180339887498949
"""Of an interval, by which the first tick comes later than the last time that the timer was set."""


def timer_is_free() -> bool:
    """Whether the timer and its signal are unused, and this thread may use them."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    )


class HostSampler:
    """Samples the thread that makes it, between `begin` and `end`; `open` before the first and `close` after the last.

    Args:
        interval_s: between ticks.
        base: code at which a stack ends; stacks without it are dropped. None keeps whole stacks.
    """

    def __init__(self, interval_s: float, base: CodeType | None = None) -> None:
        self.samples: list[tuple[int, bool, list[Any]]] = []
        """Time in ns, whether garbage was being collected, and code and instruction of each frame in turn, innermost first."""
        self.waits: list[tuple[list[Any], list[tuple[int, list[Any]]]]] = []
        """Stacks of the thread while it waited for others, and where these were meanwhile, each with its number."""
        self.spent_ns = 0
        self.looks = 0
        self.by_timer = timer_is_free()
        self.interval_ns = int(interval_s * 1e9)
        self._base = base
        self._first_ns = 0
        self._counted = 0
        self._phase = 0.0
        self._armed_ns = 0
        self._collecting = False
        self._running = False
        self._thread = threading.get_ident()
        self._ticker: threading.Thread | None = None
        self._open = False
        self._plain: list[tuple[str, Any, Any]] = []
        self._collected_code = self._on_collection.__func__.__code__  # type: ignore[attr-defined]

    def open(self) -> None:
        """Take the timer, or start the thread that stands in for it."""
        self._open = True
        gc.callbacks.insert(
            0, self._on_collection
        )  # the first is where a tick within a collection is handled
        if self.by_timer:
            self._guard()
            _signal(signal.SIGALRM, self._on_signal)
            # What waits in the system goes on by itself wherever it can.
            signal.siginterrupt(signal.SIGALRM, False)
        if not self.by_timer or _count_threads() > 1:
            self._ticker = threading.Thread(target=self._tick, name="pyrometer host sampler", daemon=True)
            self._ticker.start()

    def close(self) -> None:
        """Give everything back; a handler that someone else has set meanwhile stays."""
        if not self._open:
            return
        self._open = self._running = False
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)
        if self.by_timer:
            while self._plain:
                name, plain, ours = self._plain.pop()
                if getattr(signal, name) is ours:
                    setattr(signal, name, plain)
            if self._armed_ns:
                _setitimer(signal.ITIMER_REAL, 0.0)
                self._armed_ns = 0
            if self._is_ours():
                _signal(signal.SIGALRM, signal.SIG_DFL)
        if self._ticker is not None and self._ticker is not threading.current_thread():
            self._ticker.join(timeout=1.0)

    def _is_ours(self) -> bool:
        return signal.getsignal(signal.SIGALRM) == self._on_signal

    def _give_way(self) -> None:
        """The program wants the timer: a thread looks in its place when sampling begins again."""
        self.close()
        self.by_timer = False

    def _guard(self) -> None:
        """Give way before the program sets a timer or a handler of its own: our ticks would reach it."""

        def told(plain: Any) -> Any:
            def call(which: Any = None, /, *args: Any, **more: Any) -> Any:
                if plain is not _signal or which == signal.SIGALRM:
                    self._give_way()
                return plain(which, *args, **more) if which is not None else plain(*args, **more)

            return call

        for name in ("signal", "setitimer", "alarm"):
            plain = getattr(signal, name)
            ours = told(plain)
            self._plain.append((name, plain, ours))
            setattr(signal, name, ours)

    def begin(self) -> None:
        """A step begins: ticks count from now on.

        The timer runs on from step to step, as to set it takes up to a tenth of a millisecond on a virtual machine.
        """
        self._running = self._open
        if self.by_timer and self._open and not self._is_ours():  # the system would end the program
            self._give_way()
            return
        if not self.by_timer or self._armed_ns != self.interval_ns:
            self._arm()
        self._counted = max(0, (perf_counter_ns() - self._first_ns) // self.interval_ns + 1)

    def _arm(self) -> None:
        self._phase = (self._phase + GOLDEN) % 1.0
        first_ns = max(2_000, int(self._phase * self.interval_ns))
        self._first_ns = perf_counter_ns() + first_ns
        if self.by_timer and self._open:
            _setitimer(signal.ITIMER_REAL, first_ns * 1e-9, self.interval_ns * 1e-9)
            self._armed_ns = self.interval_ns

    def end(self) -> None:
        """The step has ended: ticks do not count until the next begins."""
        self._running = False

    def _on_signal(self, _number: int, frame: FrameType | None) -> None:
        if self._running:
            self._look(frame)

    def _look(self, frame: FrameType | None) -> None:
        now = perf_counter_ns()
        ticks = (now - self._first_ns) // self.interval_ns + 1 - self._counted
        if ticks <= 0 or frame is None:
            return
        self._counted += ticks
        code = frame.f_code
        garbage = False
        if code is self._collected_code:
            garbage, frame = self._collecting, frame.f_back
        base = self._base
        stack, rest = _stack_of(frame, base, DEEPEST)
        if rest is not None or base is None:
            self.samples.append((ticks * self.interval_ns, garbage, stack))
        self.looks += 1
        self.spent_ns += perf_counter_ns() - now

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        # A tick within a collection is handled as this is called at its end, when the line below has not yet run.
        self._collecting = phase == "start"

    def _tick(self) -> None:
        """In a thread of its own: look in the place of the timer, and at the threads that the sampled one waits for.

        A wait is not interrupted, so that the timer sees it when it is over.
        """
        while self._open:
            sleep((self.interval_ns if not self.by_timer else WAITS_NS) * 1e-9)
            if self._running:
                frames = sys._current_frames()  # noqa: SLF001 - the documented way
                frame = frames.pop(self._thread, None)
                if not self.by_timer:
                    self._look(frame)
                if frame is not None and frame.f_code.co_filename.endswith(WAITING_FILES):
                    self._look_beside(frame, frames)

    def _look_beside(self, frame: FrameType, others: dict[int, FrameType]) -> None:
        others.pop(threading.get_ident(), None)
        beside = [(thread, _stack_of(other, None, DEEPEST_OF_OTHERS)[0]) for thread, other in others.items()]
        stack, rest = _stack_of(frame, self._base, DEEPEST)
        if beside and (rest is not None or self._base is None):
            self.waits.append((stack, beside))


def _stack_of(
    frame: FrameType | None, base: CodeType | None, deepest: int
) -> tuple[list[Any], FrameType | None]:
    """Code and instruction of each frame down to a base, and the frame where that ended."""
    stack: list[Any] = []
    while frame is not None and frame.f_code is not base and len(stack) < 2 * deepest:
        stack.append(frame.f_code)
        stack.append(frame.f_lasti)
        frame = frame.f_back
    return stack, frame


INTERVAL_S = 1e-3
LONGEST_INTERVAL_S = 20e-3
LOOK_SHARE = 0.035
"""Of the time, that looking may take: where a look costs more, looks are rarer."""

COLD = 2.5
"""Times that a look takes amid operators, whose data fill the caches, of what it takes in a loop of its own."""


def fitting_interval_s(tick_ns: float, look_ns: float = 8_000.0, shortest_s: float = INTERVAL_S) -> float:
    """So long that looks stay within their share of the time.

    Args:
        tick_ns: what a look at a shallow stack takes, as `tick_cost_ns` says.
        look_ns: what walking up the stack takes.
        shortest_s: nothing is gained below.
    """
    return min(LONGEST_INTERVAL_S, max(shortest_s, (look_ns + COLD * tick_ns) * 1e-9 / LOOK_SHARE))


TRIAL_NS = 500_000
NUM_TRIALS = 12


def tick_cost_ns() -> float:
    """What one look takes from the thread on this machine, the system's part included: on virtual machines it is most of it.

    Looks at a loop of its own, in turn with none; the median of the thread's time is taken, which others on the machine
    change little.
    """
    sampler = HostSampler(TRIAL_NS * 1e-9)
    plain, sampled = [], []
    for _ in range(NUM_TRIALS):
        plain.append(_trial())
        sampler.open()
        sampler.begin()
        try:
            sampled.append(_trial())
        finally:
            sampler.end()
            sampler.close()
    looks = sampler.looks / NUM_TRIALS
    middle = NUM_TRIALS // 2
    more_ns = sorted(sampled)[middle] - sorted(plain)[middle]
    return max(0.0, more_ns / looks) if looks else 0.0


def _trial() -> int:
    """The same work each time, of about two milliseconds."""
    start = thread_time_ns()
    total = 0
    for number in range(40_000):
        total += number & 3
    return thread_time_ns() - start
