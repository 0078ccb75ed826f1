"""`pyrometer bench`: time a workload, compare two, or fill a matrix of configurations."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pyrometer.cli.explaining import explainer
from pyrometer.cli.interrupts import finishing
from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.parameters import DURATION, SHARE
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import ExitCode, UsageError
from pyrometer.settings import load_settings, with_flags

if TYPE_CHECKING:
    from pyrometer.bench.comparison.verdict import Verdict
    from pyrometer.bench.measurement import Measurement
    from pyrometer.bench.record import Soak
    from pyrometer.report.documents import BenchDocument
    from pyrometer.report.target_documents import MatrixDocument
    from pyrometer.workload.target import Target


@click.command()
@click.argument("target")
@click.argument("more_axes", nargs=-1, metavar="[AXIS=V1,V2]...")
@click.option("--vs", metavar="TARGET", help="Compare TARGET (the baseline) with this one.")
@click.option(
    "--matrix", multiple=True, metavar="AXIS=V1,V2", help="Vary batch, dtype, mode, …; more axes may follow."
)
@click.option(
    "--budget", type=DURATION, help="Time to spend, such as 20s; with --matrix, on all cells together."
)
@click.option(
    "--margin", type=SHARE, help="With --vs: treat differences up to this as no change, such as 1%."
)
@click.option("--thorough", is_flag=True, help="With --vs: run up to 1,280 blocks, with a margin of 2 %.")
@click.option(
    "--processes",
    type=click.IntRange(min=3),
    help="With --vs: repeat the comparison in this many fresh processes.",
)
@click.option("--cold", type=click.IntRange(min=1), help="Time the cold start in this many fresh processes.")
@click.option("--soak", type=DURATION, help="Run for this long and report drift of latency and memory.")
@click.option("--recipe", type=click.Path(path_type=Path), help="Time TARGET with this recipe applied.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@full_option
@page_option
@store_options
def command(
    store_location: str | None,
    *,
    target: str,
    more_axes: tuple[str, ...],
    as_json: bool,
    page: Path | None,
    full: bool,
    **flags: Any,
) -> int:
    """Time TARGET; with --vs decide whether another is faster; with --matrix find the best configuration.

    Axes are batch, dtype, autocast, memory_format, threads and mode: --matrix batch=1,8 mode=eager,default. Repeat
    the command to continue an unfinished matrix.
    """
    _require_fitting(flags, more_axes)
    flags["matrix"] += more_axes
    flags["store_location"] = store_location
    from pyrometer.workload.output import stdout_to_stderr

    with stdout_to_stderr(), progress_bar() as progress:
        document, code = _measured(target, flags, progress)
    with finishing():
        document = stored(document, store_location, kind="matrix" if flags["matrix"] else "bench")
        written = write_page(document, page, store_location=store_location)
        print_result(document, as_json=as_json, full=full, page=page if written else None)
    return code


def _require_fitting(flags: dict[str, Any], more_axes: tuple[str, ...]) -> None:
    if more_axes and not flags["matrix"]:
        raise UsageError(f"{more_axes[0]}: axes go with --matrix, as in --matrix {more_axes[0]}")
    for name in ("margin", "thorough", "processes"):
        if flags[name] is not None and flags[name] is not False and not flags["vs"]:
            raise UsageError(f"--{name} goes with --vs TARGET")
    if flags["thorough"] and flags["processes"]:
        raise UsageError("--thorough and --processes exclude each other; give one")
    if flags["soak"] is not None and flags["soak"] <= 0:
        raise UsageError(f"soak: got {flags['soak']} s; it must be positive, for example 30m")
    exclusive = [f"--{name}" for name in ("recipe", "vs", "matrix", "cold", "soak") if flags[name]]
    if len(exclusive) > 1:
        raise UsageError(f"{' and '.join(exclusive)} exclude each other; give one")


def _measured(
    target: str, flags: dict[str, Any], progress: Any
) -> tuple[BenchDocument | MatrixDocument, int]:
    settings = with_flags(
        load_settings(os.environ, Path.cwd()),
        budget_s=flags["budget"],
        margin=flags["margin"],
    )
    if flags["matrix"]:
        return _matrix(target, flags, progress)
    if flags["vs"]:
        return _verdict(target, flags, settings, progress)
    return _measurement(target, flags, settings, progress)


def _measurement(
    target: str, flags: dict[str, Any], settings: Any, progress: Any
) -> tuple[BenchDocument, int]:
    from pyrometer.bench.cold import measure_cold
    from pyrometer.bench.measure import DEFAULT_BUDGET_S, measure
    from pyrometer.bench.quality import Circumstances
    from pyrometer.bench.soak import soak
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.evidence.observed import Observed
    from pyrometer.evidence.observers import loading
    from pyrometer.evidence.options import ObserveOptions
    from pyrometer.hardware.environment import read_environment
    from pyrometer.report.documents import BenchDocument
    from pyrometer.workload.loading import load_workload
    from pyrometer.workload.target import parse_target

    budget_s = settings.budget_s or DEFAULT_BUDGET_S
    parsed = parse_target(target)
    explained = explainer("bench", parsed)
    work = load_workload(parsed)
    if flags["recipe"]:
        from pyrometer.tuning.recipe.recipe import load_recipe

        work = load_recipe(flags["recipe"]).workload(work)  # type: ignore[arg-type]
    applied = f" --recipe {shlex.quote(str(flags['recipe']))}" if flags["recipe"] else ""
    asked = Circumstances(command=f"pyrometer bench {target}{applied}", budget_s=budget_s)
    measurement = measure(
        work, budget_s=budget_s, confidence=settings.confidence, circumstances=asked, progress=progress
    )
    seen = Observed(evidence=Evidence(target=target, measurement=measurement))
    more: dict[str, Any] = {}
    code = exit_code_of(measurement)
    try:
        if flags["cold"] and measurement.complete:
            more["cold"] = measure_cold(parsed, flags["cold"], progress)
            code = 130 if more["cold"].interrupted else code
        if flags["soak"] and measurement.complete:
            more["soak"] = soak(work, flags["soak"], progress=progress)
            code = exit_code_of(more["soak"])
        if measurement.complete:
            seen = loading.observe(work, seen, ObserveOptions(budget_s=budget_s))
    except KeyboardInterrupt:
        code = 130  # the measurement is kept
    evidence = msgspec.structs.replace(seen.evidence, environment=read_environment())
    return BenchDocument(evidence=evidence, diagnosis=explained(evidence), **more), code


def exit_code_of(measurement: Measurement | Soak) -> int:
    """0, 130 when Ctrl-C ended it, 4 when the user's program failed on the way."""
    if measurement.interrupted:
        return 130
    return ExitCode.USER_PROGRAM if measurement.failure else ExitCode.OK


def _verdict(target: str, flags: dict[str, Any], settings: Any, progress: Any) -> tuple[BenchDocument, int]:
    from pyrometer.bench.comparison.compare import compare
    from pyrometer.bench.comparison.replicate import replicate
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.hardware.environment import read_environment
    from pyrometer.report.documents import BenchDocument
    from pyrometer.workload.loading import load_workload
    from pyrometer.workload.target import parse_target

    explained = explainer("bench")  # which of the two sources would be meant is not known
    a, b = parse_target(target), parse_target(flags["vs"])
    # A thorough comparison has a narrower margin of its own; only a flag overrides it.
    margin = flags["margin"] if flags["thorough"] else settings.margin
    chosen = {
        "budget_s": settings.budget_s,
        "margin": margin,
        "confidence": settings.confidence,
        "seed": settings.seed,
        "progress": progress,
    }
    if flags["processes"]:
        verdict = replicate(a, b, processes=flags["processes"], **chosen)
    else:
        verdict = compare(load_workload(a), load_workload(b), thorough=flags["thorough"], **chosen)
    verdict = _named(verdict, a, b)
    evidence = Evidence(target=target, environment=read_environment())
    document = BenchDocument(
        evidence=evidence, diagnosis=explained(evidence), versus=flags["vs"], verdict=verdict
    )
    if verdict.interrupted:
        return document, 130
    return document, ExitCode.UNDECIDED if verdict.outcome == "undecided" else ExitCode.OK


def _named(verdict: Verdict, a: Target, b: Target) -> Verdict:
    """With both sides named by what differs between the targets; a target beside itself keeps its letters."""
    from pyrometer.store.commit import read_commit, short_commit
    from pyrometer.workload.naming import told_apart, with_commits

    if a.text == b.text:
        return verdict
    folders = [Path(side.place).parent for side in (a, b) if side.kind != "module"]
    apart = len(folders) == 2 and folders[0] != folders[1]
    commits = [short_commit(*read_commit(folder)) for folder in folders] if apart else ["", ""]
    baseline, candidate = with_commits(told_apart(a.text, b.text), commits)
    return msgspec.structs.replace(verdict, baseline=baseline, candidate=candidate)


def _matrix(target: str, flags: dict[str, Any], progress: Any) -> tuple[MatrixDocument, int]:
    from pyrometer.bench.matrix.axes import parse_axes
    from pyrometer.bench.matrix.matrix import run_matrix
    from pyrometer.hardware.environment import read_environment
    from pyrometer.report.target_documents import MatrixDocument
    from pyrometer.store.place import local_folder
    from pyrometer.workload.target import parse_target

    store = flags["store_location"]
    matrix = run_matrix(
        parse_target(target),
        parse_axes(flags["matrix"]),
        budget_s=flags["budget"],
        resume_dir=local_folder(store) / "unfinished" if store is not None else None,
        progress=progress,
    )
    document = MatrixDocument(target=target, matrix=matrix, environment=read_environment())
    if matrix.interrupted:
        return document, 130
    return document, ExitCode.OK if matrix.recommendation is not None else ExitCode.UNDECIDED
