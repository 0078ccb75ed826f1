"""Recording a trace of a script that is run as it is."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds
from pyrometer.trace.capture.overhead import step_cost
from pyrometer.trace.capture.record import Capture, CaptureOptions, require_count
from pyrometer.trace.capture.writing import destination, finish, partial, reopened
from pyrometer.trace.steady.derived import between
from pyrometer.trace.trace import Trace
from pyrometer.workload.script.observe import observe
from pyrometer.workload.script.observed import HostRequest, ObservedScript, TraceRequest


@dataclass(frozen=True)
class TracedScript:
    """What a script did, and a trace of some of its steps.

    Attributes:
        observed: the script as `check` sees it; its exit code, steps, phases and notes.
        trace: what was recorded; `None` when the script never came so far.
    """

    observed: ObservedScript
    trace: Trace | None


def trace_script(
    argv: list[str],
    *,
    steps: int = 5,
    skip: int = 3,
    options: CaptureOptions | None = None,
    path: str | Path | None = None,
    python: str = sys.executable,
    timeout_s: Seconds | None = None,
    environment: Mapping[str, str] | None = None,
    host: HostRequest | None = None,
) -> TracedScript:
    """Run a script unchanged, and record some of its steps as they come by.

    Its output, exit code and exceptions are its own. Steps are found from optimizer steps, loader iterations or calls of
    the outermost module; after `skip` of them one warms the profiler up, and `steps` are recorded. If the script ends before,
    also by an exception, what there was until then is kept. A profiler of the script's own has precedence.

    Args:
        argv: the script and its arguments.
        steps: steps to record.
        skip: steps before; 0 records from the start, without a step that warms up.
        options: what to record; see `CAPTURE_OPTIONS` for the price of each.
        path: where to keep the file, `.json` or `.json.gz`; without it, the trace is only returned.
        python: the interpreter to run it with.
        timeout_s: end it after so long.
        environment: variables to set for it, beside those of this process.
        host: how to look where the host is, in the steps after those of the trace; the file is the caller's to read.

    Raises:
        TargetError: the script is missing, not a file, or not Python source text.
        InputError: a number, the path or the interpreter cannot be used.
    """
    require_count("steps", steps, 1)
    require_count("skip", skip, 0)
    options = CaptureOptions() if options is None else options
    with destination(None if path is None else Path(path).absolute()) as target:
        file = partial(target)
        request = TraceRequest(
            path=str(file),
            steps=steps,
            skip=skip,
            modules=options.with_modules,
            options=options.for_profiler,
            host=host,
        )
        try:
            observed = observe(
                argv, python=python, timeout_s=timeout_s, trace_request=request, environment=environment
            )
            return trace_of(observed, target, request, options, kept=path is not None)
        finally:
            file.unlink(missing_ok=True)
            Path(f"{file}.failure").unlink(missing_ok=True)


def trace_of(
    observed: ObservedScript,
    target: Path,
    request: TraceRequest,
    options: CaptureOptions,
    *,
    kept: bool = False,
) -> TracedScript:
    """Read back what was recorded of a script's steps, and put it in its place.

    Args:
        observed: the script.
        target: where the file is to lie in the end.
        request: what the script was asked for; where the profiler wrote.
        options: what was to be recorded.
        kept: whether the file outlives this process.
    """
    file = Path(request.path)
    observed = _with_failure(observed, Path(f"{file}.failure"))
    if observed.traced is None or not file.exists():
        return TracedScript(observed, None)
    finish(file, target)
    capture = _capture(observed, options, request.steps)
    try:
        trace = reopened(target, capture, kept=kept, expected_steps=None)
    except PyrometerError as error:
        return TracedScript(_noted(observed, str(error)), None)
    trace = _without_last_part(trace, capture.num_steps)
    return TracedScript(observed, _with_foreign_steps(trace, capture.num_steps))


def _without_last_part(trace: Trace, num_steps: int) -> Trace:
    """Without the step in the midst of which the script ended, where there are whole ones: a part of one is like none of them."""
    rank = trace.ranks[0]
    if not 0 < num_steps == rank.steps.height - 1:
        return trace
    whole = between(rank, rank.span[0], int(rank.steps["end_ns"][num_steps - 1]))
    return dataclasses.replace(trace, ranks=(whole,))


def _with_foreign_steps(trace: Trace, num_steps: int) -> Trace:
    """Say when the script's own profiler, waiting for its turn, has marked its steps in our trace, too."""
    height, capture = trace.ranks[0].steps.height, trace.capture
    if capture is None or height <= num_steps + 1:  # the last one may have been cut off
        return trace
    note = f"the trace marks {height} steps, of which {num_steps} are ours: the script's own profiler marks steps, too"
    return dataclasses.replace(trace, capture=msgspec.structs.replace(capture, notes=[*capture.notes, note]))


def _with_failure(observed: ObservedScript, failure: Path) -> ObservedScript:
    return _noted(observed, f"the trace failed: {failure.read_text()}") if failure.exists() else observed


def _noted(observed: ObservedScript, note: str) -> ObservedScript:
    return msgspec.structs.replace(observed, notes=[*observed.notes, note])


def _capture(observed: ObservedScript, options: CaptureOptions, steps: int) -> Capture:
    """The cost of the trace: its steps beside the regular ones of the same script, apart from the first."""
    traced = observed.traced
    assert traced is not None
    span = range(traced.first, traced.first + traced.num_steps)
    # The step that warms the profiler up, and the one in which the file is written, are of neither kind.
    between = range(traced.first - 1, span.stop + 1)
    usable = [i for i, regular in enumerate(observed.regular) if regular and i > 0]
    bare_s = [observed.step_ns[i] * 1e-9 for i in usable if i not in between]
    traced_s = [observed.step_ns[i] * 1e-9 for i in usable if i in span]
    notes = list(observed.notes)
    if traced.num_steps < steps:
        notes.append(
            f"the script ended, or gave no more steps, after {traced.num_steps} of {steps} were recorded"
        )
    return Capture(
        source="script",
        options=options,
        asked_steps=steps,
        num_steps=traced.num_steps,
        **step_cost(bare_s, traced_s),
        raw_bytes=0,
        file_bytes=0,
        num_events=0,
        notes=notes,
    )
