"""A profiler that follows the steps of a script as they happen: skip, warm up, record, write, and never look again.

Where a step ends says `step_ends`; what was recorded by a poorer mark is thrown away when a better one first appears: before its
first update, a training may call its model for a long time.
"""

from __future__ import annotations

import contextlib
import warnings

from . import kinds
from .kineto import (
    PHASE,
    new_profiler,
    profiler_running,
    quiet,
    steps_schedule,
    unknown_block_freed,
)
from .log import EventLog
from .step_ends import ANOTHER, BETTER, STEP, StepEnds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_NAMES = {
    kinds.DATA_BEGIN: PHASE + "data",
    kinds.FORWARD_BEGIN: PHASE + "forward",
    kinds.BACKWARD_BEGIN: PHASE + "backward",
    kinds.OPTIMIZER_BEGIN: PHASE + "optimizer",
}


class Tracer:
    """Told by the observer what begins and ends in the script's main thread; nothing that fails here reaches the script.

    Args:
        torch: the module.
        log: where begin, end and troubles are noted.
        request: `path` of the trace, `steps` to record, steps to `skip` before, `modules` for their spans, and `options`
            of the profiler.
    """

    __slots__ = (
        "_began",
        "_ends",
        "_guard",
        "_log",
        "_modules",
        "_noted",
        "_num_steps",
        "_open",
        "_profiler",
        "_recording",
        "_request",
        "_state",
        "_torch",
        "_written",
    )

    def __init__(self, torch: Any, log: EventLog, request: dict[str, Any]) -> None:
        self._torch = torch
        self._log = log
        self._request = request
        self._state = "waiting"
        self._ends = StepEnds()
        self._num_steps = 0
        self._recording = False
        self._written = False
        self._began = False  # something, since the last step ended
        self._profiler: Any = None
        self._modules: Any = None
        self._guard: Any = None
        self._open: list[tuple[int, Any]] = []
        self._noted: set[str] = set()

    def begin(self, kind: int, value: int, _subject: Any = None) -> None:
        """Something of this kind begins, on this object."""
        if self._is_over:
            return
        try:
            if self._state == "waiting" and self._request["skip"] == 0:
                self._start(warmup=0)
            self._boundary(kind, value)
            if self._state == "running":
                annotation = self._torch.profiler.record_function(_NAMES[kind])
                annotation.__enter__()
                self._began = True
                self._open.append((kind, annotation))
        except Exception as error:  # noqa: BLE001 - the script comes first; the log says what happened
            self._fail(error)

    def end(self, kind: int, value: int = 0, _subject: Any = None) -> None:
        """Something of this kind has ended."""
        if self._is_over:
            return
        try:
            begun = [i for i, (opened, _) in enumerate(self._open) if opened == kind - 1]
            self._close(begun[-1] if begun else len(self._open))
            self._boundary(kind, value)
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(error)

    @property
    def is_done(self) -> bool:
        """Whether it will record nothing more, unless a better mark of steps appears."""
        return self._state in {"done", "written"}

    @property
    def _is_over(self) -> bool:
        return self._state == "done" or (self._state == "written" and self._ends.is_best)

    def finish(self) -> None:
        """The script ends; what was recorded until now is kept."""
        try:
            if self._state == "running":
                if self._recording and (self._num_steps or self._began):
                    self._stop(early=True)
                else:
                    self._discard()
            if self._state == "waiting" and not self._written:
                self._note("too few steps")
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(error)
        self._state = "done"

    def detach(self) -> None:
        """In a forked child: it has nothing to record."""
        self._state = "done"

    def _boundary(self, kind: int, value: int) -> None:
        found = self._ends.at(kind, value)
        if found & BETTER:
            if self._state == "running" and (self._request["skip"] or self._num_steps):
                self._discard()
            if self._state == "written":
                self._state, self._recording = "waiting", False
            self._num_steps = 0
        if found & ANOTHER and self._state == "waiting":
            self._num_steps = 0
        if not found & STEP:
            return
        self._num_steps += 1
        if self._state == "waiting" and self._num_steps >= self._request["skip"]:
            self._start(warmup=1)
        elif self._state == "running":
            self._next_step()

    def _start(self, warmup: int) -> None:
        if profiler_running(self._torch):
            self._note("profiled by itself")
            return
        steps = self._request["steps"]
        self._num_steps = 0
        with _unheard():
            self._profiler, _ = new_profiler(
                self._torch,
                self._request["options"],
                schedule=steps_schedule(self._torch, warmup, steps),
                on_ready=self._write,
            )
            with unknown_block_freed(self._torch):
                self._profiler.start()
        self._guard = ProfilerGuard(self._torch, self._give_way)
        self._state = "running"
        self._recording = warmup == 0
        self._watch_modules()
        if self._recording:
            self._log.add(kinds.word(kinds.TRACE_BEGIN))

    def _next_step(self) -> None:
        self._close(0)
        self._began = False
        with _unheard(), contextlib.nullcontext() if self._recording else unknown_block_freed(self._torch):
            self._profiler.step()
        if not self._recording:
            self._recording = True
            self._num_steps = 0
            self._log.add(kinds.word(kinds.TRACE_BEGIN))
        elif self._num_steps >= self._request["steps"]:
            self._stop(early=False)

    def _stop(self, *, early: bool) -> None:
        """End the profiler, which writes what it has; `early` says that the last step is not whole."""
        self._close(0)
        self._state, self._written = "written", True
        self._let_go()
        self._log.add(kinds.word(kinds.TRACE_END, self._num_steps))
        if early:
            self._note("cut off")
        with _unheard():
            self._profiler.stop()
        self._profiler = None

    def _discard(self) -> None:
        self._close(0)
        self._let_go()
        self._state, self._recording = "waiting", False
        profiler, self._profiler = self._profiler, None
        profiler.on_trace_ready = None
        with _unheard():
            profiler.stop()

    def _give_way(self) -> None:
        """The script starts a profiler of its own, and there can be only one."""
        if self._state == "running":
            if not self._recording:
                self._discard()
                return
            self._note("gave way")
            self._stop(early=False)

    def _let_go(self) -> None:
        if self._guard is not None:
            self._guard.remove()
        if self._modules is not None:
            self._modules.switch(False)
            self._modules = None

    def _watch_modules(self) -> None:
        if not self._request["modules"]:
            return
        from .instrument import CannotInstrumentError
        from .module_spans import ModuleSwitch

        try:
            self._modules = ModuleSwitch(self._torch)
        except (AttributeError, CannotInstrumentError):
            self._note("no modules")
        else:
            self._modules.switch(True)

    def _write(self, profiler: Any) -> None:
        profiler.export_chrome_trace(self._request["path"])

    def _close(self, position: int) -> None:
        """End the spans from this one inwards."""
        while len(self._open) > position:
            self._open.pop()[1].__exit__(None, None, None)

    def _note(self, trouble: str) -> None:
        if trouble not in self._noted:
            self._noted.add(trouble)
            self._log.add(kinds.word(kinds.TRACE_TROUBLE, kinds.TRACE_TROUBLES.index(trouble)))

    def _fail(self, error: Exception) -> None:
        self._state = "done"
        self._note("failed")
        profiler, self._profiler = self._profiler, None
        with contextlib.suppress(Exception), _unheard():
            self._close(0)
            self._let_go()
            if profiler is not None:
                profiler.on_trace_ready = None
                profiler.stop()
        with contextlib.suppress(OSError), open(self._request["path"] + ".failure", "w") as report:  # noqa: PTH123
            report.write(f"{type(error).__name__}: {error}")


class ProfilerGuard:
    """Calls back before anyone else starts a profiler, also one that begins by waiting."""

    __slots__ = ("_plain",)

    def __init__(self, torch: Any, give_way: Callable[[], None]) -> None:
        starts = ((torch.profiler.profile, "start"), (torch.autograd.profiler.profile, "_prepare_trace"))
        self._plain = [(kind, name, getattr(kind, name)) for kind, name in starts if hasattr(kind, name)]
        for kind, name, plain in self._plain:
            setattr(kind, name, _told_before(plain, give_way))

    def remove(self) -> None:
        """Leave torch as it was."""
        while self._plain:
            setattr(*self._plain.pop())


def _told_before(plain: Callable[[Any], Any], tell: Callable[[], None]) -> Callable[[Any], Any]:
    def start(profiler: Any) -> Any:
        tell()
        return plain(profiler)

    return start


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Neither lines of the profiler on stderr nor warnings, which a script may have turned into errors."""
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
