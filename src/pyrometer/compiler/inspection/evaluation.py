"""Is torch.compile worth it here, and in which mode: eager against every mode, in one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from pyrometer.bench.break_even import break_even_steps
from pyrometer.bench.comparison.compare import compare
from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.bench.fresh import run_fresh
from pyrometer.bench.measure import measure
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.quality import Caveat, CaveatCode
from pyrometer.bench.stage import Progress, part_of
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.costs.code import artifact_bytes, read_code
from pyrometer.compiler.inspection.accuracy import Accuracy, compare_outputs, tolerance_of
from pyrometer.compiler.inspection.eager import entry_points
from pyrometer.compiler.inspection.record import Evaluation, ModeResult
from pyrometer.compiler.inspection.runtime import can_profile, profile_steps
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private.fresh_cache import fresh_cache
from pyrometer.compiler.private.importing import import_compiler
from pyrometer.errors import InputError, UserProgramError
from pyrometer.quantity import Seconds, counted, significant
from pyrometer.record import Record, doc
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target, TargetSpec
from pyrometer.workload.variant import MODES
from pyrometer.workload.workload import Workload

EAGER = "eager"
DEFAULT_MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs")
DEFAULT_MODE_S = 5.0
TIMEOUT_S = 1800.0
PROFILED_STEPS = 5
MACHINE = frozenset(
    code.value
    for code in (
        CaveatCode.COMPETING_LOAD,
        CaveatCode.STEAL,
        CaveatCode.THROTTLED,
        CaveatCode.FREQUENCY_CHANGED,
    )
)
"""Reservations about the machine: they hold for the whole table."""


class ModeRequest(Record, frozen=True, kw_only=True):
    """One mode of one workload, for a fresh process."""

    spec: TargetSpec
    mode: str
    seconds: Annotated[Seconds, doc("to measure, and as much again to compare with eager; compiling apart")]


class EvaluatedMode(Record, frozen=True, kw_only=True):
    """A row of the table, and the verdict on it in words."""

    result: ModeResult
    words: str = ""
    caveats: Annotated[list[Caveat], doc("of its measurement and its comparison, about the machine")] = []


def evaluate_modes(
    work: Workload | Target,
    modes: Sequence[str] = DEFAULT_MODES,
    *,
    mode_s: Seconds = DEFAULT_MODE_S,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a workload eagerly and in modes of torch.compile, each mode paired with eager and checked against it.

    Compile times are those of a machine that has not seen the program: every mode gets an empty cache of Inductor's. A target
    runs each mode in a process of its own; a workload runs all of them in this one, where what was imported and traced for one
    mode makes the next a little cheaper, and peak memory is that of the whole process.

    Args:
        work: what to run, not compiled yet.
        modes: of torch.compile, beside eager.
        mode_s: time to measure a mode, and as much again to compare it; compiling does not count.
        progress: told how far it is.

    Returns:
        The table; after Ctrl-C, of the modes that were done by then.

    Raises:
        InputError: an unknown mode, or a model that is compiled already in a way that cannot be undone from outside.
        UserProgramError: the program fails eagerly.
    """
    wanted = [mode for mode in dict.fromkeys(modes) if mode != EAGER]
    for mode in wanted:
        if mode not in MODES:
            raise InputError(f"modes: got {mode!r}; legal are {', '.join(MODES)}")
    if not mode_s > 0:
        raise InputError(f"mode_s: got {mode_s}; it must be positive, for example 5")
    evaluate = _in_fresh(work, mode_s) if isinstance(work, Target) else _in_process(work, mode_s)
    rows: list[EvaluatedMode] = []
    start_s = time.monotonic()
    interrupted = False
    for number, mode in enumerate([EAGER, *wanted]):
        try:
            if progress is not None:
                part_of(progress, number / (len(wanted) + 1), (number + 1) / (len(wanted) + 1), 2 * mode_s)(
                    0.0, f"mode {mode}, {number + 1} of {len(wanted) + 1}"
                )
            rows.append(evaluate(mode))
        except UserProgramError as failure:
            if mode == EAGER:
                raise
            rows.append(_failed(mode, str(failure)))
        except KeyboardInterrupt:
            if not rows:
                raise
            interrupted = True
            break
    evaluation = conclude_modes(rows)
    return msgspec.structs.replace(evaluation, elapsed_s=time.monotonic() - start_s, interrupted=interrupted)


def expected_seconds(compile_s: Seconds, num_modes: int, mode_s: Seconds) -> Seconds:
    """About what an evaluation takes: each mode is compiled anew, measured and compared; eager is measured.

    >>> expected_seconds(10.0, num_modes=3, mode_s=5.0)
    65.0
    """
    return num_modes * (compile_s + 2 * mode_s) + mode_s


def evaluate_mode(request: ModeRequest) -> EvaluatedMode:
    """Evaluate one mode of a target; what a fresh process runs.

    Raises:
        InputError: the configuration cannot be prepared.
        UserProgramError: a step raised.
    """
    return _evaluate(load_workload(request.spec.target()), request.mode, request.seconds)


def conclude_modes(rows: Sequence[EvaluatedMode]) -> Evaluation:
    """Put rows together, the first of them eager: the fastest mode that was shown to be faster and computes the same."""
    caveats = list({caveat.code: caveat for row in reversed(rows) for caveat in row.caveats}.values())[::-1]
    fit = [row for row in rows if row.result.outcome == "faster" and not row.result.failure]
    best = min(fit, key=lambda row: row.result.ratio or 1.0, default=None)
    if best is None:
        said = [f"{row.result.mode} {row.words or 'failed'}" for row in rows[1:]]
        text = "; ".join(["eager: no mode was shown to be faster", *said])
        return Evaluation(modes=[row.result for row in rows], best=EAGER, sentence=text, caveats=caveats)
    steps = best.result.break_even_steps
    repaid = "" if steps is None else f", repaid after {steps} steps"
    return Evaluation(
        modes=[row.result for row in rows],
        best=best.result.mode,
        sentence=f"{best.result.mode}: {best.words}{repaid}",
        caveats=caveats,
    )


def _in_process(work: Workload, seconds: Seconds) -> Callable[[str], EvaluatedMode]:
    return lambda mode: _evaluate(work, mode, seconds)


def _in_fresh(target: Target, seconds: Seconds) -> Callable[[str], EvaluatedMode]:
    return lambda mode: run_fresh(
        evaluate_mode,
        ModeRequest(spec=target.spec, mode=mode, seconds=seconds),
        timeout_s=TIMEOUT_S,
    )


def _evaluate(work: Workload, mode: str, seconds: Seconds) -> EvaluatedMode:
    variant = work.variant(mode=mode)
    if mode == EAGER:
        measured = measure(variant, budget_s=seconds, phases=False)
        if measured.failure is None:
            _require_plain(variant)
        row = msgspec.structs.replace(_row(mode, measured, _utilization(variant)), failure=measured.failure)
        return EvaluatedMode(result=row, caveats=_of_machine(measured.warnings))
    import_compiler()
    with fresh_cache():
        with collect() as collector:
            measured = measure(variant, budget_s=seconds, phases=False, beyond_first_call=True)
        if measured.failure is not None:
            raise UserProgramError(measured.failure)
        accuracy = compare_outputs(variant, lambda fixed: fixed.variant(mode=EAGER), tolerance_of(work))
        verdict = compare(work.variant(mode=EAGER), variant, budget_s=seconds)
        utilization = _utilization(variant)
    judged = _judged(_row(mode, measured, utilization), measured, accuracy, verdict, collector.log())
    return msgspec.structs.replace(judged, caveats=_of_machine([*measured.warnings, *verdict.caveats]))


def _of_machine(caveats: Sequence[Caveat]) -> list[Caveat]:
    """Those that say what else the machine did."""
    return [caveat for caveat in caveats if caveat.code in MACHINE]


def _require_plain(work: Workload) -> None:
    """Refuse a reference that is compiled itself.

    Raises:
        InputError: it is.
    """
    with work.open() as session:
        session.activate()
        points = entry_points(session)
    if points is not None and points.functions:
        raise InputError(
            f"work: each eager step makes {counted(points.functions, 'call')} through torch.compile, so that there is nothing to compare "
            "modes with; give the program without torch.compile, the modes compile it"
        )


def _row(mode: str, measured: Measurement, utilization: float | None) -> ModeResult:
    return ModeResult(
        mode=mode,
        latency_s=measured.median_s,
        p99_over_mean=measured.jitter,
        throughput_per_s=measured.throughput,
        peak_bytes=measured.peak_bytes,
        device_utilization=utilization,
        compile_s=measured.compile_s,
        outcome="reference" if mode == EAGER else "undecided",
        ratio=1.0 if mode == EAGER else None,
    )


def _judged(
    row: ModeResult, measured: Measurement, accuracy: Accuracy, verdict: Verdict, log: CompileLog
) -> EvaluatedMode:
    """A row with its paired comparison, its error and what it takes to be repaid."""
    error = accuracy.error
    failure = None
    if error is not None and not error.within_tolerance:
        failure = error.mismatch or (
            f"the outputs differ by {significant(error.max_rel)} of the largest value; {error.tolerance} is legal"
        )
    result = msgspec.structs.replace(
        row,
        artifact_bytes=artifact_bytes(read_code(log)),
        max_abs=None if error is None else error.max_abs,
        max_rel=None if error is None else error.max_rel,
        cosine=None if error is None else error.cosine,
        outcome=verdict.outcome,
        ratio=verdict.ratio,
        ci_low=verdict.ci_low,
        ci_high=verdict.ci_high,
        break_even_steps=_break_even_steps(measured, verdict),
        failure=failure,
    )
    words = sentence(verdict)
    return EvaluatedMode(result=result, words=words if failure is None else f"{words}, but {failure}")


def _break_even_steps(measured: Measurement, verdict: Verdict) -> int | None:
    """By the paired ratio: medians of two measurements would add the machine's mood in between."""
    if verdict.outcome != "faster":
        return None
    steady_s = measured.median_s
    eager_s = steady_s / (verdict.wall_ratio or verdict.ratio)
    found = break_even_steps(eager_s, steady_s, measured.first_call_s - steady_s)
    return None if found is None else max(found, 1)


def _utilization(work: Workload) -> float | None:
    """Share of time with work on the device, over a few steps; `None` on a CPU."""
    with work.open() as session:
        if session.device.type == "cpu" or not can_profile():
            return None
        return profile_steps(session, PROFILED_STEPS).busy_share


def _failed(mode: str, failure: str) -> EvaluatedMode:
    return EvaluatedMode(
        result=ModeResult(mode=mode, outcome="failed", failure=failure), words=f"failed: {failure}"
    )
