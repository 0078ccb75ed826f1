"""Recording a trace of a workload: warm up, time it bare, record it, write, reopen, and say what it cost."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError, PyrometerError
from pyrometer.quantity import Bytes, Seconds, format_bytes
from pyrometer.trace.capture.overhead import step_cost
from pyrometer.trace.capture.phase_spans import PhaseSpans
from pyrometer.trace.capture.record import Capture, CaptureOptions, require_count
from pyrometer.trace.capture.step_times import StepTimes
from pyrometer.trace.capture.writing import destination, finish, partial, reopened
from pyrometer.trace.trace import Trace
from pyrometer.workload.failure import user_code
from pyrometer.workload.script.startup._pyrometer_inside.instrument import CannotInstrumentError
from pyrometer.workload.script.startup._pyrometer_inside.kineto import (
    compiled_frames,
    new_profiler,
    profiler_running,
    quiet,
    steps_schedule,
)
from pyrometer.workload.script.startup._pyrometer_inside.module_spans import ModuleSpans, ModuleSwitch
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import hide_from_compiler
from pyrometer.workload.workload import Session, Workload, require_workload

MANY_BYTES = 500_000_000
TOO_LONG = 6
"""Times the bytes that were allowed, from where on not even one step is recorded."""

MOST_COMPILING_STEPS = 20
MOST_BARE_STEPS = 10


def record_trace(
    work: Workload,
    *,
    steps: int = 5,
    warmup: int = 2,
    options: CaptureOptions | None = None,
    path: str | Path | None = None,
    most_bytes: Bytes | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Trace:
    """Record a trace of a workload with torch.profiler; `Trace.capture` says how, and at what cost.

    Each step lies in a `ProfilerStep#n`, its phases in `phase:<name>`, calls of modules in `module:<qualified name>`.
    The user's objects, torch's settings and hooks are as before at the end. Beside the steps of the trace it runs those that
    compile something, `warmup` more, one that predicts the size of the file, one that warms the profiler up, and as
    many without the profiler before and after as it traces, but no more than 10, so that its overhead can be told.

    Args:
        work: what to run.
        steps: steps to record.
        warmup: steps to run before, beside those in which something is compiled.
        options: what to record; see `CAPTURE_OPTIONS` for the price of each.
        path: where to keep the file, `.json` or `.json.gz`; without it, the trace is only returned.
        most_bytes: fewer steps are recorded when the file is predicted to grow beyond this; one step may take six times as much.
        on_note: called as soon as something is worth saying, such as a file that will be large.

    Raises:
        InputError: a number or the path cannot be used, or a profiler is running already.
        UserProgramError: a step raised.
        PyrometerError: the profiler recorded nothing, or a single step takes far more than `most_bytes`.
    """
    require_workload(work)
    require_count("steps", steps, 1)
    require_count("warmup", warmup, 0)
    if profiler_running(torch):
        raise InputError("a profiler is running in this process, and there can be only one; stop it first")
    with destination(None if path is None else Path(path)) as target:
        recorder = _Recorder(CaptureOptions() if options is None else options, partial(target), on_note)
        try:
            with work.open() as session:
                session.activate()
                capture = recorder.record(session, work, steps, warmup, most_bytes)
            finish(recorder.file, target)
        finally:
            recorder.file.unlink(missing_ok=True)
        return reopened(target, capture, kept=path is not None, expected_steps=capture.num_steps)


class _Recorder:
    """One capture of a session."""

    def __init__(self, options: CaptureOptions, file: Path, on_note: Callable[[str], None] | None) -> None:
        self.file = file
        self._options = options
        self._on_note = on_note
        self._notes: list[str] = []

    def record(
        self, session: Session, work: Workload, steps: int, warmup: int, most_bytes: Bytes | None
    ) -> Capture:
        run = PhaseSpans(session)
        with user_code(f"{work.name}: a step before the trace"):
            self._warm_up(run, warmup)
            bare_s = _timed(session, run.learn, min(steps, MOST_BARE_STEPS))
        with self._module_spans(session), user_code(f"{work.name}: a step under the profiler"):
            predicted = self._predict(run, steps)
            if most_bytes is not None and predicted > TOO_LONG * most_bytes * steps:
                raise PyrometerError(
                    f"a single step takes {format_bytes(predicted // steps)} of trace, and reading so much takes longer than "
                    "there is time for; give it more, or trace a smaller step"
                )
            if most_bytes is not None and predicted > most_bytes:
                asked, steps = steps, max(1, steps * most_bytes // predicted)
                predicted = predicted // asked * steps
                self._note(
                    f"{asked} steps would have taken more than {format_bytes(most_bytes)}: {steps} recorded"
                )
            # Garbage of before, this capture's own included, would be collected within one of a few steps, for a tenth of a second.
            gc.collect()
            traced_s = self._profile(session, run, steps)
        with user_code(f"{work.name}: a step after the trace"):
            bare_s += _timed(session, run.learn, min(steps, MOST_BARE_STEPS))
        if run.deviated:
            self._note("the phases changed from step to step, so that a span may bear another one's name")
        return Capture(
            source="workload",
            options=self._options,
            asked_steps=steps,
            num_steps=len(traced_s),
            **step_cost(bare_s, traced_s),
            predicted_bytes=predicted,
            raw_bytes=0,
            file_bytes=0,
            num_events=0,
            notes=self._notes,
        )

    def _warm_up(self, run: PhaseSpans, warmup: int) -> None:
        for _ in range(MOST_COMPILING_STEPS):
            frames = compiled_frames()
            run.learn()
            if compiled_frames() == frames:
                break
        else:
            self._note(
                f"each of {MOST_COMPILING_STEPS} steps compiled something anew: the trace holds compilation, too"
            )
        for _ in range(warmup):
            run.learn()

    @contextlib.contextmanager
    def _module_spans(self, session: Session) -> Iterator[None]:
        roots = _modules_of(session) if self._options.with_modules else {}
        if not roots:
            yield
            return
        try:
            modules = ModuleSwitch(torch)
        except (AttributeError, CannotInstrumentError) as error:
            self._note(f"calls of modules have no spans: this torch is not what is expected ({error})")
            yield
            return
        hide_from_compiler(torch, ModuleSpans)
        for prefix, root in roots.items():
            modules.spans.name_modules(root, prefix)
        if any(_has_compiled(root) for root in roots.values()):
            self._note("modules inside of compiled code have no spans: compiled code makes no calls")
        modules.switch(True)
        try:
            yield
        finally:
            modules.switch(False)

    def _predict(self, run: PhaseSpans, steps: int) -> Bytes:
        """Record a single step and weigh its file."""
        frames = compiled_frames()
        profiler, _ = new_profiler(torch, self._options.for_profiler)
        with quiet():
            profiler.start()
        try:
            run.step()
        finally:
            with quiet():
                profiler.stop()
        profiler.export_chrome_trace(str(self.file))
        predicted = self.file.stat().st_size * steps
        if predicted > MANY_BYTES:
            self._note(
                f"the trace will take about {format_bytes(predicted)}; record fewer steps, or leave options out"
            )
        if compiled_frames() > frames:
            self._note("a step under the profiler compiled something anew that had been compiled before")
        return predicted

    def _profile(self, session: Session, run: PhaseSpans, steps: int) -> list[Seconds]:
        times = StepTimes(session.device)
        profiler, missing = new_profiler(
            torch,
            self._options.for_profiler,
            schedule=steps_schedule(torch, warmup=1, active=steps),
            on_ready=self._export,
        )
        if missing:
            self._note(f"this torch cannot record {', '.join(missing)}")
        with quiet():
            profiler.start()
        try:
            run.step()
            _next(profiler)
            times.mark()
            for step in range(steps):
                run.step()
                times.mark()
                if step < steps - 1:
                    profiler.step()
                else:
                    _next(profiler)
        except BaseException:
            profiler.on_trace_ready = None
            raise
        finally:
            with quiet():
                profiler.stop()
        return times.durations_s()

    def _export(self, profiler: Any) -> None:
        try:
            profiler.export_chrome_trace(str(self.file))
        except RuntimeError as error:
            raise PyrometerError(f"{self.file}: the profiler could not write its trace: {error}") from error

    def _note(self, note: str) -> None:
        self._notes.append(note)
        if self._on_note is not None:
            self._on_note(note)


def _next(profiler: Any) -> None:
    """To the next step, where the profiler changes what it does."""
    with quiet():
        profiler.step()


def _timed(session: Session, step: Callable[[], None], num_steps: int) -> list[Seconds]:
    times = StepTimes(session.device)
    times.mark()
    for _ in range(num_steps):
        step()
        times.mark()
    return times.durations_s()


def _modules_of(session: Session) -> dict[str, nn.Module]:
    """The modules that a session runs, by the prefix of their names."""
    parts = getattr(session, "parts", None)
    found = {
        "": getattr(session, "model", getattr(session, "function", None)),
        "loss": getattr(parts, "loss", None),
    }
    return {prefix: module for prefix, module in found.items() if isinstance(module, nn.Module)}


def _has_compiled(root: nn.Module) -> bool:
    return any(
        hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None
        for part in root.modules()
    )
