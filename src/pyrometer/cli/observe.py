"""What `check` and `audit` share: the options of a check, and observing a target."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.bench import exit_code_of
from pyrometer.cli.progress import progress_bar
from pyrometer.errors import ExitCode
from pyrometer.garbage import uncollected
from pyrometer.settings import load_settings, with_flags

if TYPE_CHECKING:
    from pyrometer.evidence.observed import Observed
    from pyrometer.evidence.options import ObserveOptions
    from pyrometer.rules.diagnosis import Diagnosis
    from pyrometer.workload.ranks.record import Stall
    from pyrometer.workload.target import Target


def observe_options(
    budget_s: float | None, store_location: str | None, *, compiling: bool = False
) -> ObserveOptions:
    """From flags and settings."""
    with uncollected():
        from pyrometer.bench.measure import DEFAULT_BUDGET_S
        from pyrometer.evidence.options import ObserveOptions
        from pyrometer.store.place import local_folder

    settings = with_flags(load_settings(os.environ, Path.cwd()), budget_s=budget_s)
    return ObserveOptions(
        budget_s=settings.budget_s or DEFAULT_BUDGET_S,
        confidence=settings.confidence,
        peaks_folder=None if store_location is None else local_folder(store_location) / "peaks",
        compiling=compiling,
    )


def observe_target(target: Target, options: ObserveOptions, *, quiet: bool) -> Observed:
    """Everything that can be observed of a target.

    Args:
        target: a script or a workload.
        options: how much time to take.
        quiet: keep what the program prints away from stdout.
    """
    with ExitStack() as stack:
        stack.enter_context(_prints_on_stderr(quiet))
        if target.kind == "script":
            from pyrometer.evidence.script import observe_script

            return observe_script([target.spec.text, *target.spec.args], options)
        with uncollected():
            from pyrometer.bench.garbage import hiding
            from pyrometer.evidence.observe import observe
            from pyrometer.workload.loading import load_workload

        progress: Any = stack.enter_context(progress_bar())
        with (
            hiding()
        ):  # optimizers import Dynamo, and what that makes would be collected twice among all of torch
            work = load_workload(target)
        return observe(work, target.spec.text, dataclasses.replace(options, progress=progress))


def _prints_on_stderr(quiet: bool) -> AbstractContextManager[None]:
    """Where stdout belongs to the document, what the program prints goes to stderr."""
    if not quiet:
        return contextlib.nullcontext()
    from pyrometer.workload.output import stdout_to_stderr

    return stdout_to_stderr()


def observe_launch(
    target: Target, options: ObserveOptions, num_ranks: int, hang_after_s: float | None, *, quiet: bool
) -> Observed:
    """A script on several ranks of this machine; a hang is told while it lasts."""
    from pyrometer.evidence.ranks import observe_ranks
    from pyrometer.workload.ranks.stalls import HANG_AFTER_S

    argv = [target.spec.text, *target.spec.args]
    with _prints_on_stderr(quiet):
        return observe_ranks(
            argv, num_ranks, options, hang_after_s=hang_after_s or HANG_AFTER_S, tell=_tell_stall
        )


def observe_as_rank(
    target: Target, options: ObserveOptions, gather: Path | None, hang_after_s: float | None, *, quiet: bool
) -> Observed | int | None:
    """A script in a rank that a launcher started: rank 0 gathers all, the others end with the script's own exit code.

    `None` where no launcher started this process.
    """
    from pyrometer.workload.ranks.world import world_of

    world = None if target.kind != "script" else world_of(os.environ)
    if world is None:
        return None
    from pyrometer.evidence.ranks import observe_rank
    from pyrometer.workload.ranks.stalls import HANG_AFTER_S

    argv = [target.spec.text, *target.spec.args]
    with _prints_on_stderr(quiet):
        return observe_rank(
            argv, world, options, gather, hang_after_s=hang_after_s or HANG_AFTER_S, tell=_tell_stall
        )


def _tell_stall(stall: Stall) -> None:
    from pyrometer.report.facts.launch import told

    click.echo(f"pyrometer: {told(stall)}", err=True)


def with_trials(target: Target, diagnosis: Diagnosis, budget_s: float, step_s: float | None) -> Diagnosis:
    """The diagnosis with the rewrites of its first findings tried, untried after Ctrl-C; what the program prints goes to stderr."""
    from pyrometer.tuning.trying import try_rewrites
    from pyrometer.workload.output import stdout_to_stderr

    with contextlib.suppress(KeyboardInterrupt), stdout_to_stderr(), progress_bar() as progress:
        return try_rewrites(target, diagnosis, budget_s=budget_s, step_s=step_s or 0.0, progress=progress)
    return diagnosis


def exit_code_of_target(seen: Observed) -> int:
    """130 after Ctrl-C; a script's own exit status, as `time` and `coverage run` do; 128 + n when signal n ended it.

    A script that ended well without a step leaves everything undecided, and it is told what to do.
    """
    evidence = seen.evidence
    if seen.interrupted:
        return 130
    if evidence.script is not None:
        code = evidence.script.exit_code
        if code == 0 and not evidence.script.num_steps:
            return without_steps(evidence.script.argv[0])
        return code if code >= 0 else 128 - code
    return exit_code_of(evidence.measurement) if evidence.measurement is not None else ExitCode.OK


def without_steps(script: str) -> int:
    """Say what to do about a script in which no step was seen; the exit code of that."""
    from pyrometer.workload.target import factories_of

    names = factories_of(script, Path(script)) or "train.py:work"
    click.echo(
        f"{script}: no step was seen, so that nothing could be judged; name the script that calls the model in its own "
        f"process, or a function, as in {names}, that returns what repeats: pm.Inference(model, inputs), "
        "pm.Training(…) or pm.Call(function)",
        err=True,
    )
    return ExitCode.UNDECIDED
