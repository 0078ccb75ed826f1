"""`observe`: run a script as it is, and say what its steps, phases and memory were."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pyrometer.errors import InputError, TargetError
from pyrometer.quantity import Seconds
from pyrometer.record import to_json
from pyrometer.workload.script.child import Ended, observed_environment, run_child
from pyrometer.workload.script.cost import event_cost_ns
from pyrometer.workload.script.events import Events, Integers, read_events
from pyrometer.workload.script.notes import notes_on
from pyrometer.workload.script.observed import FollowRequest, ObservedScript, TracedSteps, TraceRequest
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.steps import UNKNOWN, Steps, evaluation_ns, find_steps


def observe(
    argv: list[str],
    *,
    python: str = sys.executable,
    timeout_s: Seconds | None = None,
    trace_request: TraceRequest | None = None,
    follow_request: FollowRequest | None = None,
    environment: Mapping[str, str] | None = None,
) -> ObservedScript:
    """Run a script unchanged in a Python of its own, and observe it.

    Its standard streams, working directory, arguments, exit code and exceptions are as with `python script.py …`; child
    processes of the script are not observed.

    Args:
        argv: the script and its arguments.
        python: the interpreter to run it with.
        timeout_s: end it after so long; what was seen until then is kept.
        trace_request: which of its steps to trace, and where to.
        follow_request: what to tell of it inside, instead of tracing.
        environment: variables to set for it, beside those of this process.

    Raises:
        TargetError: the script is missing, not a file, or not Python source text.
        InputError: the interpreter cannot be started.
    """
    require_script(argv)
    with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
        log = Path(folder) / "events"
        requests = (None if one is None else to_json(one).decode() for one in (trace_request, follow_request))
        surrounded = observed_environment(log, *requests) | dict(environment or {})
        return observed_from(log, argv, run_child([python, *argv], surrounded, timeout_s))


def observed_from(log: Path, argv: list[str], ended: Ended) -> ObservedScript:
    """What the log of a script that has ended tells."""
    try:
        events = read_events(log)
    except InputError:
        return _unobserved(argv, ended, log.with_name("events.failure"))
    steps = find_steps(events)
    cost_ns = event_cost_ns(log.with_name("trial")) if len(steps) else 0.0
    return describe(argv, ended, events, steps, cost_ns)


def require_script(argv: list[str]) -> None:
    """Refuse what cannot be a script.

    Raises:
        TargetError: the script is missing, not a file, or not Python source text.
    """
    if not argv:
        raise TargetError("no script given; name a Python file, as in train.py")
    path = Path(argv[0])
    if not path.exists():
        raise TargetError(f"{argv[0]}: no such file; name an existing Python script")
    if not path.is_file():
        raise TargetError(f"{argv[0]}: not a file; name a Python script")
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise TargetError(f"{argv[0]}: cannot be read: {error.strerror}") from error
    if b"\0" in head:
        raise TargetError(f"{argv[0]}: holds binary data; a script must be Python source text")


def describe(argv: list[str], ended: Ended, events: Events, steps: Steps, cost_ns: float) -> ObservedScript:
    """What the events of a log tell; `cost_ns` is what one of them costs."""
    imported = events.of(kinds.TORCH_IMPORTED)
    compile_ns = events.last_value(kinds.COMPILE_NS)
    per_step = _events_per_step(events, steps)
    memory_steps, memory_bytes = _known(steps.resident_bytes)
    allocated_steps, allocated_bytes = _known(steps.allocated_bytes)
    return ObservedScript(
        argv=argv,
        exit_code=ended.exit_code,
        interrupted=ended.interrupted,
        timed_out=ended.timed_out,
        wall_s=ended.wall_s,
        import_s=float(imported.time_ns[0] - events.start_ns) * 1e-9 if len(imported.time_ns) else None,
        steps_from=steps.steps_from,
        step_start_ns=(steps.start_ns - events.start_ns).tolist(),
        step_ns=steps.duration_ns.tolist(),
        regular=steps.regular.tolist(),
        phase_ns={name: spent.tolist() for name, spent in steps.phase_ns.items()},
        collected_ns=steps.collected_ns.tolist(),
        device_step_ns=_device_times(steps),
        first_step_s=float(steps.duration_ns[0]) * 1e-9 if len(steps) else None,
        outside_steps_s=ended.wall_s - float(steps.duration_ns.sum()) * 1e-9,
        evaluation_s=evaluation_ns(events, steps) * 1e-9,
        compile_s=None if compile_ns is None else compile_ns * 1e-9,
        memory_steps=memory_steps,
        memory_bytes=memory_bytes,
        peak_bytes=_peak(events),
        allocated_steps=allocated_steps,
        allocated_bytes=allocated_bytes,
        allocated_peak_bytes=events.last_value(kinds.ALLOCATED_PEAK_BYTES),
        events_per_step=per_step,
        overhead_share=per_step * cost_ns / float(np.median(steps.duration_ns))
        if per_step is not None
        else None,
        traced=_traced(events, steps),
        sampled_steps=_ended_at(events.of(kinds.HOST_SAMPLED), steps, and_next=False),
        watched_steps=_ended_at(events.of(kinds.HOST_WATCHED), steps, and_next=True),
        micro_batch=events.last_value(kinds.BATCH_SIZE),
        accumulation=_backwards_per_step(events, steps),
        notes=notes_on(ended, events, steps),
    )


def _traced(events: Events, steps: Steps) -> TracedSteps | None:
    """Which steps the profiler recorded: those between its begin and its end."""
    begins, ends = events.of(kinds.TRACE_BEGIN).time_ns, events.of(kinds.TRACE_END)
    if not len(begins) or not len(ends.time_ns):
        return None
    first = int(np.searchsorted(steps.start_ns, begins[-1], side="right")) - 1
    return TracedSteps(first=max(0, first), num_steps=int(ends.value[-1]))


def _ended_at(marks: Events, steps: Steps, *, and_next: bool) -> list[int]:
    """The steps at whose end something was logged, and those that follow if these are meant, too."""
    following = np.searchsorted(steps.start_ns, marks.time_ns, side="right") - 1
    # A mark is logged while the end of a step is handled, on either side of where it is said to lie.
    ended = [
        int(step) - (time_ns - steps.start_ns[step] < steps.duration_ns[step] / 2)
        for step, time_ns in zip(following, marks.time_ns, strict=True)
    ]
    chosen = {step + more for step in ended for more in range(1 + and_next)}
    return sorted(step for step in chosen if 0 <= step < len(steps))


def _unobserved(argv: list[str], ended: Ended, failure: Path) -> ObservedScript:
    ignored = "this Python ignores PYTHONPATH, or ended too early"
    reason = failure.read_text() if failure.exists() else ignored
    return ObservedScript(
        argv=argv,
        exit_code=ended.exit_code,
        interrupted=ended.interrupted,
        timed_out=ended.timed_out,
        wall_s=ended.wall_s,
        import_s=None,
        steps_from="nothing",
        outside_steps_s=ended.wall_s,
        notes=[f"nothing was observed: {reason}"],
    )


def _events_per_step(events: Events, steps: Steps) -> float | None:
    if not len(steps) or not steps.duration_ns.sum():
        return None
    end = steps.start_ns[-1] + steps.duration_ns[-1]
    inside = (events.time_ns >= steps.start_ns[0]) & (events.time_ns <= end)
    return float(inside.sum()) / len(steps)


def _backwards_per_step(events: Events, steps: Steps) -> int | None:
    """The median, where steps are those of the optimizer."""
    if steps.steps_from != "optimizer steps" or not len(steps):
        return None
    begins = events.of(kinds.BACKWARD_BEGIN).time_ns
    bounds = np.append(steps.start_ns, steps.start_ns[-1] + steps.duration_ns[-1])
    return int(np.median(np.diff(np.searchsorted(begins, bounds)))) or None


def _known(per_step: Integers) -> tuple[list[int], list[int]]:
    steps = np.flatnonzero(per_step != UNKNOWN)
    return steps.tolist(), per_step[steps].tolist()


def _device_times(steps: Steps) -> list[int | None]:
    if not (steps.device_ns != UNKNOWN).any():
        return []
    return [None if device_ns == UNKNOWN else device_ns for device_ns in steps.device_ns.tolist()]


def _peak(events: Events) -> int | None:
    """The kernel's high-water mark, or the highest sample of a script that did not live to report it."""
    mark = events.last_value(kinds.RESIDENT_PEAK_BYTES)
    if mark is not None:
        return mark
    samples = events.of(kinds.RESIDENT_BYTES).value
    return int(samples.max()) if len(samples) else None
