"""Capturing a trace for a verb: from a workload, a script, or a running process."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyrometer.errors import ExitCode, UsageError
from pyrometer.redaction import redacted_argv

if TYPE_CHECKING:
    from pyrometer.trace.capture.record import CaptureOptions
    from pyrometer.trace.trace import Trace
    from pyrometer.workload.program.record import Program

EXTRAS = {
    "stack": "with_stack",
    "shapes": "record_shapes",
    "memory": "profile_memory",
    "modules": "with_modules",
    "flops": "with_flops",
}
"""What the setting `capture` names, and the option of a capture behind it."""


@dataclass(frozen=True)
class Captured:
    """A capture, and what it was taken from."""

    target: str
    trace: Trace | None
    program: Program | None = None  # of a workload
    exit_code: int = ExitCode.OK  # of a script
    is_script: bool = False
    missing: str = ""  # why there is no trace
    idle: str | None = None  # the script, where it made no step


def parse_extras(text: str) -> CaptureOptions:
    """Read the setting `capture`, such as `stack,shapes`.

    Raises:
        UsageError: something else is named.
    """
    from pyrometer.trace.capture.record import CaptureOptions

    named = [] if text.strip() == "none" else [part.strip() for part in text.split(",") if part.strip()]
    unknown = [name for name in named if name not in EXTRAS]
    if unknown:
        raise UsageError(
            f"capture: got {unknown[0]!r}; legal are {', '.join(EXTRAS)}, separated by commas, or none"
        )
    return CaptureOptions(**{option: name in named for name, option in EXTRAS.items()})


def capture_target(
    text: str,
    arguments: tuple[str, ...],
    *,
    steps: int,
    options: CaptureOptions,
    path: Path | None,
    as_json: bool,
) -> Captured:
    """Capture a TARGET; the output of a factory goes to stderr, a script's own stays where it is unless JSON is printed."""
    from pyrometer.workload.output import stdout_to_stderr
    from pyrometer.workload.target import parse_target

    target = parse_target(text, arguments)
    is_script = target.kind == "script"
    with contextlib.ExitStack() as stack:
        if as_json or not is_script:
            stack.enter_context(stdout_to_stderr())
        if is_script:
            return _capture_script([text, *arguments], steps=steps, options=options, path=path)
        from pyrometer.trace.capture.workload import record_trace
        from pyrometer.workload.loading import load_workload
        from pyrometer.workload.program.describe import describe

        work = load_workload(target)
        trace = record_trace(work, steps=steps, options=options, path=path, on_note=_tell)
        return Captured(target.text, trace, program=describe(work))


def capture_process(pid: int, *, steps: int, options: CaptureOptions, path: Path | None) -> Captured:
    """Capture from a running process; it writes the file, which is kept only where a path was given."""
    import tempfile

    from pyrometer.trace.capture.attach import attach

    with contextlib.ExitStack() as stack:
        place = path or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "trace.json.gz"
        trace = attach(pid, place, steps=steps, options=options)
    return Captured(f"process {pid}", trace)


def _capture_script(argv: list[str], *, steps: int, options: CaptureOptions, path: Path | None) -> Captured:
    from pyrometer.trace.capture.script import trace_script

    traced = trace_script(argv, steps=steps, options=options, path=path)
    code = traced.observed.exit_code
    return Captured(
        shlex.join(redacted_argv(argv)),
        traced.trace,
        exit_code=code if code >= 0 else 128 - code,
        is_script=True,
        idle=None if traced.observed.step_ns else argv[0],
        missing="; ".join(traced.observed.notes) or f"{argv[0]}: it ended before a step could be traced",
    )


def _tell(note: str) -> None:
    click.echo(f"note: {note}", err=True)
