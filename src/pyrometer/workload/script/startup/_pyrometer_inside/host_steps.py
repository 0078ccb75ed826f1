"""Samples the steps of a script as they come by, once the trace is done: some whose values are followed, one watched, then some sampled and some bare.

Steps end where `step_ends` says. What was seen is written when the script ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from time import perf_counter_ns

from . import kinds
from .host_record import COUNT_NOTE, TRACED_NOTE, host_record
from .host_sampler import HostSampler, fitting_interval_s, tick_cost_ns
from .host_watch import HostWatch
from .log import EventLog
from .step_ends import BETTER, STEP, StepEnds
from .torch_hooks import compile_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .tracer import Tracer

SAMPLED_BLOCK_NS = 60_000_000
BARE_BLOCK_NS = 20_000_000
FEWEST_STEPS = 2
"""That are sampled, whatever they take."""


class HostSteps:
    """Told of what begins and ends in the script's main thread, after the tracer; nothing that fails here reaches the script.

    Args:
        log: where sampled and watched steps are noted.
        request: `path` of the file to write, `budget_s` for all sampled and bare steps together, and `dataflow`, what follows values, as a request to follow.
        tracer: what records first.
    """

    __slots__ = ("_block_ns", "_ends", "_flow", "_last_ns", "_log", "_notes", "_request", "_sampler", "_state", "_tracer", "_watch", "bare", "sampled")  # fmt: skip

    def __init__(self, log: EventLog, request: dict[str, Any], tracer: Tracer) -> None:
        self._log = log
        self._request = request
        self._tracer = tracer
        self._ends = StepEnds()
        self._state = "waiting"
        self._sampler: HostSampler | None = None
        self._watch: HostWatch | None = None
        self._flow: Any = None
        self._notes: list[str] = []
        self._last_ns = 0
        self._block_ns = 0
        self.sampled: list[int] = []
        self.bare: list[int] = []

    def begin(self, kind: int, value: int, subject: Any = None) -> None:
        """Something of this kind begins, on this object."""
        self._tracer.begin(kind, value, subject)
        self._boundary(kind, value, subject)

    def end(self, kind: int, value: int = 0, subject: Any = None) -> None:
        """Something of this kind has ended."""
        self._tracer.end(kind, value, subject)
        self._boundary(kind, value)

    def finish(self) -> None:
        """The script ends: write what was seen."""
        self._tracer.finish()
        try:
            self._let_go()
            if self._sampler is not None and self.sampled:
                record = host_record(self._sampler, self._watch, self.sampled, self.bare, self._notes)
                with open(self._request["path"], "w") as file:  # noqa: PTH123 - pathlib is not loaded here
                    json.dump(record, file)
        except Exception as error:  # noqa: BLE001 - the script comes first
            self._fail(error)
        self._state = "over"

    def detach(self) -> None:
        """In a forked child: it has no timer, and nothing to record."""
        self._state = "over"
        self._tracer.detach()
        if self._watch is not None:
            self._watch.end()
        if self._flow is not None:
            self._flow.detach()

    def _boundary(self, kind: int, value: int, subject: Any = None) -> None:
        if self._state == "over" or (self._state == "done" and self._ends.is_best):
            return
        try:
            if self._state == "followed":
                self._tell_flow(kind, subject)
            found = self._ends.at(kind, value)
            if found & BETTER and self._state != "waiting":
                self._let_go()
                self._state = "waiting"
            if found & STEP:
                self._next_step()
        except Exception as error:  # noqa: BLE001 - the script comes first
            self._fail(error)

    def _tell_flow(self, kind: int, subject: Any) -> None:
        if kind in {kinds.OPTIMIZER_BEGIN, kinds.OPTIMIZER_END}:
            self._flow.optimizer(subject if kind == kinds.OPTIMIZER_BEGIN else None)
        elif kind == kinds.FORWARD_BEGIN:
            self._flow.module(subject)

    def _next_step(self) -> None:
        """A step has ended: note what it was, and decide what the next one is."""
        now = perf_counter_ns()
        spent = now - self._last_ns
        if self._state == "sampled" and self._sampler is not None:
            self._sampler.end()
            self._log.add(kinds.word(kinds.HOST_SAMPLED))
            self.sampled.append(spent)
        elif self._state == "bare":
            self.bare.append(spent)
        elif self._state == "watched":
            self._finish_watch()
            self._state = "settling"
            return
        elif self._state == "followed":
            self._log.add(kinds.word(kinds.HOST_WATCHED))
            if not self._follows_next():
                self._state = "between"
            return
        self._block_ns += spent
        self._choose()
        if self._state == "sampled" and self._sampler is not None:
            self._sampler.begin()
        self._last_ns = perf_counter_ns()

    def _choose(self) -> None:
        if self._state == "waiting":
            if self._tracer.is_done:
                self._sampler = HostSampler(fitting_interval_s(tick_cost_ns()))
                self.sampled, self.bare = [], []  # by a poorer mark
                self._state = "followed" if self._follows_values() else "between"
        elif self._state == "between":
            self._begin_watch()
        elif self._state == "settling":
            self._switch("bare")
        elif self._state != "done" and (
            sum(self.sampled) + sum(self.bare) >= self._request["budget_s"] * 1e9
            and len(self.sampled) >= FEWEST_STEPS
        ):
            self._switch("done")
        elif self._state == "bare" and self._block_ns >= BARE_BLOCK_NS:
            self._switch("sampled")
        elif self._state == "sampled" and self._block_ns >= SAMPLED_BLOCK_NS:
            self._switch("bare")

    def _follows_values(self) -> bool:
        """Begin to follow what reads what, with a library that this Python may not have."""
        wanted = self._request.get("dataflow")
        if wanted is None or compile_ns() != 0:
            return False
        try:
            make = getattr(importlib.import_module(wanted["module"]), wanted["name"])
            self._flow = make(sys.modules["torch"], wanted["settings"])
        except Exception as error:  # noqa: BLE001 - the script comes first
            self._notes.append(f"what reads what was not recorded: {error}")
            return False
        return self._follows_next()

    def _follows_next(self) -> bool:
        """Go on to follow values; what followed them is let go with all that it knows once it has ended."""
        try:
            if self._flow.next_step():
                return True
        except Exception as error:  # noqa: BLE001 - the script comes first
            self._notes.append(f"what reads what was not recorded: {error}")
            self._flow.stop()
        self._flow = None
        return False

    def _switch(self, state: str) -> None:
        sampler = self._sampler
        if sampler is not None:
            if state == "sampled":
                sampler.open()
            else:
                sampler.close()
        self._state, self._block_ns = state, 0

    def _begin_watch(self) -> None:
        if sys.gettrace() is not None:
            self._notes.append(TRACED_NOTE)
            self._switch("bare")
            return
        self._watch = HostWatch()
        self._state = "watched"
        self._watch.begin(sys._getframe())  # noqa: SLF001 - the documented way

    def _finish_watch(self) -> None:
        watch = self._watch
        if watch is not None:
            watch.end()
            if not watch.complete:
                self._notes.append(COUNT_NOTE)
            watch.settle()
            # The step that begins holds that work, too.
            self._log.add(kinds.word(kinds.HOST_WATCHED))

    def _let_go(self) -> None:
        if self._flow is not None:
            self._flow.stop()
        if self._sampler is not None:
            self._sampler.end()
            self._sampler.close()
        if self._watch is not None:
            self._watch.end()

    def _fail(self, error: Exception) -> None:
        self._state = "over"
        with contextlib.suppress(Exception):
            self._let_go()
        with contextlib.suppress(OSError), open(self._request["path"] + ".failure", "w") as report:  # noqa: PTH123
            report.write(f"{type(error).__name__}: {error}")
