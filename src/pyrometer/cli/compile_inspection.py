"""Finding out what torch.compile does, for a verb: with a workload, a script, or from logs."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from pyrometer.cli.interrupts import INTERRUPTED
from pyrometer.cli.observe import without_steps
from pyrometer.cli.progress import progress_bar
from pyrometer.errors import ExitCode, UsageError
from pyrometer.quantity import format_seconds
from pyrometer.redaction import redacted_argv
from pyrometer.settings import load_settings, with_flags

if TYPE_CHECKING:
    from pyrometer.bench.stage import Progress
    from pyrometer.compiler.inspection.record import Evaluation
    from pyrometer.compiler.log import CompileLog
    from pyrometer.compiler.report import CompileReport
    from pyrometer.quantity import Seconds
    from pyrometer.tuning.shapes.record import ShapeStrategies
    from pyrometer.workload.program.record import Program
    from pyrometer.workload.target import Target
    from pyrometer.workload.workload import Workload

EXTRAS = ("deep", "rewrites", "modes")
"""What `--with` names."""

MOST_DONE = 0.9
"""The share that the report itself is of a run that also tries rewrites."""

LOG_SUFFIXES = (".log", ".log.gz", ".txt")


class Inspected(NamedTuple):
    """What was found, and the log that it was found in."""

    target: str
    report: CompileReport
    log: CompileLog
    shapes: ShapeStrategies | None = None
    program: Program | None = None
    divergence: Sequence[str] = ()
    was_run: bool = True  # here, not somewhere else long ago
    exit_code: int = ExitCode.OK  # of a script, or of a program that fails once it is compiled
    is_script: bool = False


def is_log(target: str) -> bool:
    """Whether a target is a log, or a folder of logs."""
    return Path(target).is_dir() or target.endswith(LOG_SUFFIXES)


def inspect_target(target: str, parsed: Target | None, flags: dict[str, Any], *, quiet: bool) -> Inspected:
    """Inspect a TARGET, a script or a log.

    Args:
        target: as it was typed.
        parsed: the same as a target; `None` for a log.
        flags: `mode`, `extras`, `shapes` and `budget` of the command line.
        quiet: keep stdout free of what a script prints.

    Raises:
        UsageError: a flag that needs a workload, and there is none.
    """
    if parsed is None:
        _require_workload(flags, f"{target} is a log")
        return _of_log(target)
    if parsed.kind == "script":
        _require_workload(flags, f"{target} runs as it is")
        return _of_script([target, *parsed.spec.args], quiet=quiet)
    return _of_workload(parsed, flags)


def parse_extras(text: str) -> frozenset[str]:
    """Read `--with deep,modes`.

    >>> sorted(parse_extras("deep, modes"))
    ['deep', 'modes']

    Raises:
        UsageError: something else is named.
    """
    named = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [name for name in named if name not in EXTRAS]
    if unknown:
        raise UsageError(f"--with: got {unknown[0]!r}; legal are {', '.join(EXTRAS)}, separated by commas")
    return frozenset(named)


def _require_workload(flags: dict[str, Any], why: str) -> None:
    for flag, given in (("mode", flags["mode"]), ("with", flags["extras"]), ("shapes", flags["shapes"])):
        if given:
            raise UsageError(f"--{flag}: {why}; it goes with a workload, as in model.py:workload")


def _of_log(place: str) -> Inspected:
    from pyrometer.compiler.build import build_report
    from pyrometer.compiler.collecting.files import read_logs
    from pyrometer.compiler.inspection.ranks import compare_ranks

    logs = read_logs(place)
    return Inspected(place, build_report(logs[0]), logs[0], divergence=compare_ranks(logs), was_run=False)


def _of_script(argv: list[str], *, quiet: bool) -> Inspected:
    from pyrometer.compiler.inspection.script import inspect_script
    from pyrometer.workload.output import stdout_to_stderr

    with stdout_to_stderr() if quiet else contextlib.nullcontext():
        script = inspect_script(argv)
    code = INTERRUPTED if script.observed.interrupted else script.observed.exit_code
    if not (code or script.observed.step_ns or script.log.entries):
        code = without_steps(argv[0])
    return Inspected(
        shlex.join(redacted_argv(argv)),
        script.report,
        script.log,
        divergence=script.divergence,
        exit_code=code if code >= 0 else 128 - code,
        is_script=True,
    )


def _of_workload(target: Target, flags: dict[str, Any]) -> Inspected:
    from pyrometer.compiler.collecting.collector import collect
    from pyrometer.compiler.inspection.inspect import DEFAULT_BUDGET_S, inspect_compile
    from pyrometer.compiler.private.console import without_break_warnings
    from pyrometer.tuning.shapes.sample import read_sample
    from pyrometer.workload.loading import load_workload
    from pyrometer.workload.output import stdout_to_stderr
    from pyrometer.workload.program.describe import describe

    settings = with_flags(load_settings(os.environ, Path.cwd()), budget_s=flags["budget"])
    budget_s = settings.budget_s or DEFAULT_BUDGET_S
    sample = None if flags["shapes"] is None else read_sample(flags["shapes"])
    with stdout_to_stderr(), progress_bar() as progress:
        work = load_workload(target)
        asked = _Asked(target, work, flags, budget_s, progress)
        with collect() as collector, without_break_warnings():
            report = inspect_compile(
                work, mode=flags["mode"], deep="deep" in flags["extras"], budget_s=budget_s, progress=progress
            )
            found = Inspected(target.text, report, collector.log(), program=describe(work))
        if report.interrupted:
            return found._replace(exit_code=INTERRUPTED)
        found = found._replace(exit_code=ExitCode.OK if report.failure is None else ExitCode.USER_PROGRAM)
        try:
            with without_break_warnings():
                for fuller in _with_more(found, asked, sample):
                    found = fuller
        except KeyboardInterrupt:
            return found._replace(exit_code=INTERRUPTED)
    return found


class _Asked(NamedTuple):
    """A workload, and what was asked about it."""

    target: Target
    work: Workload
    flags: dict[str, Any]
    budget_s: Seconds
    progress: Progress


def _with_more(
    found: Inspected, asked: _Asked, sample: list[dict[str, tuple[int, ...]]] | None
) -> Iterator[Inspected]:
    """With more and more of what was asked for beside the report.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was yielded by then stands.
    """
    from pyrometer.compiler.inspection.trial import try_rewrites
    from pyrometer.tuning.shapes.recommend import recommend_shapes

    work, mode, extras = asked.work, asked.flags["mode"], asked.flags["extras"]
    if "rewrites" in extras:
        asked.progress(MOST_DONE, "trying the rewrites")
        trial = try_rewrites(work, found.report, mode=mode, budget_s=asked.budget_s)
        found = found._replace(report=replace(found.report, trial=trial))
        yield found
    if "modes" in extras:
        evaluation = _modes(asked, found.report.cost.compile_s)
        found = found._replace(report=replace(found.report, evaluation=evaluation))
        yield found
        if evaluation.interrupted:
            raise KeyboardInterrupt
    if sample is not None:
        shapes = recommend_shapes(work, sample, mode=mode, progress=asked.progress)
        yield found._replace(shapes=shapes)


def _modes(asked: _Asked, compile_s: Seconds) -> Evaluation:
    from pyrometer.compiler.inspection.evaluation import (
        DEFAULT_MODE_S,
        DEFAULT_MODES,
        evaluate_modes,
        expected_seconds,
    )

    share_s = asked.budget_s / (1 + 2 * len(DEFAULT_MODES))
    mode_s = DEFAULT_MODE_S if asked.flags["budget"] is None else share_s
    wait_s = expected_seconds(compile_s, len(DEFAULT_MODES), mode_s)
    click.echo(
        f"modes: {len(DEFAULT_MODES)} of them, each compiled afresh and compared with eager, take about "
        f"{format_seconds(wait_s)}; autotuning longer",
        err=True,
    )
    return evaluate_modes(asked.target, mode_s=mode_s, progress=asked.progress)
