"""Observing the steps of a program from inside of its own process, for as long as it says."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec
import torch

from pyrometer.errors import InputError
from pyrometer.record import to_dict
from pyrometer.workload.script.child import Ended
from pyrometer.workload.script.cost import event_cost_ns
from pyrometer.workload.script.events import read_events
from pyrometer.workload.script.observe import describe
from pyrometer.workload.script.observed import ObservedScript, TraceRequest
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside.instrument import OBSERVER
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.module_spans import ModuleSpans, SpansBeside
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer
from pyrometer.workload.script.startup._pyrometer_inside.start import finish_log
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import (
    compile_ns,
    hide_from_compiler,
    install,
)
from pyrometer.workload.script.startup._pyrometer_inside.tracer import Tracer
from pyrometer.workload.script.steps import find_steps


class StepRecorder:
    """Records the steps of the thread that makes it, as those of a script are, from now until `end`; one at a time.

    Args:
        folder: an empty one, for the log.
        request: which of the steps to trace, and where to.

    Raises:
        InputError: this process is observed already.
    """

    def __init__(self, folder: Path, request: TraceRequest) -> None:
        global _recorder  # noqa: PLW0603 - torch is one per process
        if OBSERVER in torch.nn.Module.__call__.__code__.co_names:
            raise InputError("the steps of this process are observed already; leave one of the two out")
        hide_from_compiler(torch, Tracer, ModuleSpans, SpansBeside)
        self._file = folder / "events"
        self._log = EventLog(str(self._file))
        self._log.add(kinds.TORCH_IMPORTED)
        tracer = Tracer(torch, self._log, to_dict(request))
        self._observer = Observer(self._log, torch, follower=tracer)
        self._compiled_ns = compile_ns()
        self._started_s = time.perf_counter()
        _recorder = self
        self._switch, missing = install(torch, self._observer)
        for name in missing:
            self._log.add(kinds.word(kinds.NOT_OBSERVED, kinds.HOOK_POINTS.index(name)))

    def stop(self) -> None:
        """Leave torch as it was; again is as good as once."""
        global _recorder  # noqa: PLW0603 - see above
        if _recorder is self:
            _recorder = None
            self._switch(False)
            finish_log(self._log, self._observer, self._compiled_ns or 0)

    def end(self) -> ObservedScript:
        """Stop, and say what was seen."""
        wall_s = time.perf_counter() - self._started_s
        self.stop()
        events = read_events(self._file)
        steps = find_steps(events)
        cost_ns = event_cost_ns(self._file.with_name("trial")) if len(steps) else 0.0
        ended = Ended(exit_code=0, wall_s=wall_s, interrupted=False, timed_out=False)
        observed = describe(sys.argv, ended, events, steps, cost_ns)
        return msgspec.structs.replace(observed, import_s=None)  # torch was there before

    def forked(self) -> None:
        """In a child process, which is not observed."""
        self._log.detach()
        self._observer.detach()


_recorder: StepRecorder | None = None


def _forked() -> None:
    if _recorder is not None:
        _recorder.forked()


os.register_at_fork(after_in_child=_forked)
