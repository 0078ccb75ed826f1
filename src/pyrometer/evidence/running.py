"""Observing the steps of a program that runs here: a training that others write and start, a loop of one's own."""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from pathlib import Path

from pyrometer.compiler.inspection.observe import observe_compile
from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.observers.compilation import compiled_by_itself
from pyrometer.evidence.observers.trace import OPTIONS, with_trace
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script import SCRIPT_STEPS, measured, outcome_of
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.environment import read_environment
from pyrometer.trace.capture.script import trace_of
from pyrometer.workload.script.inside import StepRecorder
from pyrometer.workload.script.observed import TraceRequest


class RunningSteps:
    """Observes the steps of this thread from now until `end`: their times and phases, memory, compilations, a few traced.

    What goes wrong while it ends, or if it is forgotten, leaves torch as it was.

    Args:
        name: of the program.
        skip: steps before the trace; one more then warms the profiler up.
        options: where measured peaks are kept, and the confidence of intervals.

    Raises:
        InputError: this process is observed already.
    """

    def __init__(self, name: str, *, skip: int, options: ObserveOptions) -> None:
        self._name = name
        self._options = options
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pyrometer-")))
            self._request = TraceRequest(
                path=str(folder / "recorded.json"),
                steps=SCRIPT_STEPS,
                skip=skip,
                modules=OPTIONS.with_modules,
                options=OPTIONS.for_profiler,
            )
            self._probe = stack.enter_context(ConditionsProbe())
            self._compiling = stack.enter_context(observe_compile())
            self._recorder = StepRecorder(folder, self._request)
            stack.callback(self._recorder.stop)
            self._stack = stack.pop_all()
        self._folder = folder
        self.stop = weakref.finalize(self, self._stack.close)

    def end(self) -> Observed:
        """Leave torch as it was, and bring what was seen to the same records as those of a workload."""
        try:
            observed = self._recorder.end()
            read = trace_of(observed, self._folder / "trace.json", self._request, OPTIONS)
        finally:
            self.stop()
        observed = read.observed
        measurement = measured(observed, self._name, self._probe.conditions, self._options)
        evidence = Evidence(
            target=self._name,
            environment=read_environment(),
            measurement=measurement,
            script=outcome_of(observed),
            compiled=compiled_by_itself(self._compiling.log, measurement),
        )
        seen = Observed(evidence=evidence)
        return seen if read.trace is None else with_trace(seen, read.trace, self._options.peaks_folder)
