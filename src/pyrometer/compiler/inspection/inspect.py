"""`inspect_compile`: run a workload, and tell what torch.compile did with it, what that cost and what it is worth."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import cast

import msgspec

from pyrometer.bench.measure import measure
from pyrometer.bench.stage import Progress
from pyrometer.compiler.build import build_report, with_runtime
from pyrometer.compiler.collecting.collector import Collector, collect
from pyrometer.compiler.inspection.accuracy import Accuracy, compare_outputs, tolerance_of
from pyrometer.compiler.inspection.candidates import compiled_candidates, input_cycle
from pyrometer.compiler.inspection.eager import EagerSession, forced_eager
from pyrometer.compiler.inspection.earlier import EarlierCode
from pyrometer.compiler.inspection.record import Runtime
from pyrometer.compiler.inspection.running import MOST_FORCING, CompiledRun, Plan, Seen
from pyrometer.compiler.inspection.runtime import Savings, read_runtime
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private.importing import import_compiler
from pyrometer.compiler.recompiles.guards import with_eval_seconds
from pyrometer.compiler.recompiles.silent import GuardWatch
from pyrometer.compiler.report import CompileReport
from pyrometer.errors import InputError, UserProgramError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.workload.failure import described
from pyrometer.workload.workload import Workload, require_workload

DEFAULT_STEPS = 10
DEFAULT_BUDGET_S = 15.0
DEFAULT_RUN_STEPS = 1000
EAGER_S = 2.0


def inspect_compile(
    work: Workload,
    *,
    steps: int = DEFAULT_STEPS,
    mode: str | None = None,
    deep: bool = False,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    run_steps: int = DEFAULT_RUN_STEPS,
    progress: Progress | None = None,
    strict: bool = False,
) -> CompileReport:
    """Run a workload under torch.compile and report what the compiler did.

    What its author compiles (the model as a wrapper or in place, parts of it, functions that it calls) is taken as it is; where
    nothing is compiled, the whole is put behind `torch.compile`. Steps run until none compiles anything any more, then a
    few under the profiler, then compiled and eager ones in turn. torch's settings, loggers and stance and the workload's
    objects are as before at the end; what was compiled stays compiled.

    Compilation that fails is a finding: the report says so, as long as the same steps run eagerly. Ctrl-C after the first
    step ends it; what was compiled until then is reported.

    Args:
        work: what to run.
        steps: least number of steps before the steady ones; inputs of all kinds should be met in them. Of a list of shapes,
            or of up to 64 batches, each is met in any case.
        mode: of torch.compile; without it, as the work is written, or the default mode.
        deep: also ask Inductor for its fusions and buffers; this compiles anew what is in the caches.
        budget_s: time for the comparison with eager; compiling does not count.
        run_steps: length of the run for which graphs are told to pay.
        progress: told how far it is.
        strict: let exceptions of the readers pass, for tests.

    Raises:
        InputError: what is given is no workload, or cannot be prepared, or a number is not positive.
        UserProgramError: a step raised, compiled or not.

    >>> import torch
    >>> import pyrometer as pm
    >>> work = pm.Inference(torch.compile(torch.nn.Linear(8, 2), backend="eager"), torch.randn(4, 8))
    >>> report = inspect_compile(work, budget_s=0.1)
    >>> report.graphs, len(report.breaks), report.error.within_tolerance
    (1, 0, True)
    """
    require_workload(work)
    for name, value in (("steps", steps), ("budget", budget_s), ("run_steps", run_steps)):
        if not value > 0:
            raise InputError(f"{name}: got {value}; it must be positive, for example 10")
    imported_s = import_compiler()
    plan = Plan(steps, input_cycle(work), budget_s, progress or _silent)
    earlier = EarlierCode()
    with collect() as collector, _probes(collector, deep):
        seen = _run(work, mode, plan, earlier)
    if imported_s is not None:
        seen.notes.append(f"the compiler was imported before the first step, in {format_seconds(imported_s)}")
    paired = seen.paired
    savings = Savings(
        steady_s=None if paired is None else paired.steady_s,
        eager_steady_s=_eager_s(seen, min(EAGER_S, budget_s)) if paired is None else paired.eager_steady_s,
        outcome=None if paired is None else paired.verdict.outcome,
        run_steps=run_steps,
    )
    plan.progress(1.0, "outputs against eager ones")
    accuracy = _accuracy(seen)
    log = collector.log()
    earlier.take_regions(() if seen.profiled is None else seen.profiled.regions.by_id, log)
    report = build_report(
        log,
        first_call_s=seen.first_call_s,
        steady_s=savings.steady_s,
        eager_steady_s=savings.eager_steady_s,
        error=accuracy.error,
        incomplete=earlier.names(),
        notes=seen.notes,
        unavailable=[*seen.unavailable, *([accuracy.unavailable] if accuracy.unavailable else [])],
        strict=strict,
    )
    failure = None if seen.failure is None else told_failure(seen.failure)
    report = msgspec.structs.replace(
        report, as_written=seen.as_written, failure=failure, interrupted=seen.interrupted
    )
    return report if seen.watch is None else _with_steady_steps(report, seen, seen.watch, savings, log)


def _run(work: Workload, mode: str | None, plan: Plan, earlier: EarlierCode) -> Seen:
    """Try the work as it may be compiled, until something is."""
    *others, last = compiled_candidates(work, mode)
    for candidate in others:
        run = CompiledRun(candidate, plan, earlier)
        if run.go(is_last=False):
            return run.seen
    run = CompiledRun(last, plan, earlier)
    run.go(is_last=True)
    if mode is None and last.config.mode != work.config.mode:
        run.seen.as_written = False
        run.seen.notes.append(f"the work compiles nothing as it is written: mode {last.config.mode} was used")
    return run.seen


@contextlib.contextmanager
def _probes(collector: Collector, deep: bool) -> Iterator[None]:
    if not deep:
        yield
        return
    from pyrometer.compiler.private.inductor import deep_probes

    with deep_probes(collector):
        yield


def _eager_s(seen: Seen, budget_s: Seconds) -> Seconds | None:
    """What an eager step takes where no comparison was made; shows, too, that the program as such works.

    Raises:
        UserProgramError: it fails without torch.compile as well.
    """
    if seen.failure is None or seen.interrupted:
        return None
    measured = measure(forced_eager(seen.work), budget_s=budget_s, phases=False)
    if measured.failure is not None:
        raise UserProgramError(measured.failure)
    seen.notes.append(f"compiled, the program fails; eagerly it runs: {told_failure(seen.failure)}")
    with forced_eager(seen.work).open() as session:
        session.activate()
        forcing_s = cast("EagerSession", session).forcing_s()
    if forcing_s is None or forcing_s > MOST_FORCING * measured.median_s:
        seen.unavailable.append("eager step time: the program cannot be uncompiled from outside")
        return None
    return measured.median_s


def _accuracy(seen: Seen) -> Accuracy:
    if seen.failure is not None:
        return Accuracy(None, "numerics: the compiled program failed")
    if seen.interrupted:
        return Accuracy(None, "numerics: Ctrl-C ended it before outputs were compared")
    return compare_outputs(seen.work, forced_eager, tolerance_of(seen.work))


def _with_steady_steps(
    report: CompileReport, seen: Seen, watch: GuardWatch, savings: Savings, log: CompileLog
) -> CompileReport:
    profiled = seen.profiled
    runtime = Runtime() if profiled is None else read_runtime(profiled, log, report.compilations, savings)
    runtime = msgspec.structs.replace(
        runtime,
        silent_eager=watch.silent(),
        verdict=None if seen.paired is None else seen.paired.verdict,
    )
    guards = with_eval_seconds(report.guards, watch.guard_s, watch.slowest)
    report = with_runtime(msgspec.structs.replace(report, guards=guards), runtime)
    again_s = sum(recompile.compile_s or 0.0 for recompile in report.recompiles)
    if report.cost.break_even_steps is None or not again_s:
        return report
    note = (
        f"recompilations took {format_seconds(again_s)}: break_even_steps counts those of the first step only"
    )
    return msgspec.structs.replace(report, notes=[*report.notes, note])


def told_failure(failure: UserProgramError) -> str:
    """A failure of compiled code in one line, with what the backend raised where torch only says that it did."""
    inner = getattr(failure.__cause__, "inner_exception", None)
    return str(failure) if inner is None else f"{failure}: {described(inner)}"


def _silent(_share: float, _what: str) -> None:
    """The progress of someone who does not ask."""
