"""Trying the rewrites of findings: each is applied to a copy of the target in memory, its results are compared, and its time.

The program as it is and the program with the rewrite are two workloads, loaded apart in one process. Their first steps, from the
same random state, must give the same within the tolerance of the fix class; then they run in turn, as `compare` does it.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from pyrometer.advice import Advice, Gain
from pyrometer.bench.clock import PatientClock
from pyrometer.bench.comparison.conclusion import conclude
from pyrometer.bench.comparison.decision import DecisionRule
from pyrometer.bench.comparison.trial import Trial as PairedTrial
from pyrometer.bench.comparison.trial import open_sides
from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.bench.matrix.numerics import output_error, with_fixed_inputs
from pyrometer.compiler.advice.apply import apply_rewrite
from pyrometer.compiler.inspection.accuracy import tolerance_of
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds, counted, format_ratio
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.finding import Finding, Trial
from pyrometer.workload.changes.edited import load_edited
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target
from pyrometer.workload.workload import Workload

Progress: TypeAlias = Callable[[float, str], None]

TRIED = frozenset({"exact", "tolerance"})
"""How exact a rewrite must be to be tried: whether another meaning is wanted, a comparison cannot tell."""

MOST_TRIED = 4
MIN_BUDGET_S: Seconds = 4.0
ENOUGH_STEPS = 80
"""Steps, some of them to warm up, after which most gains that are worth having are decided: as many are run even where that
takes longer than the budget, but no longer than the limit for one rewrite."""

MOST_S: Seconds = 30.0
RULE = DecisionRule(confidence=0.95, looks=(8, 12, 20, 40, 80), difference_share=1.0)
"""Large gains are decided by eight blocks, which are 16 steps, or 32 of short ones."""

ADVISED = frozenset({"faster", "undecided"})
"""Outcomes after which the advice stands."""

NOTHING = "nothing to try: no finding has a rewrite of the target's own lines that keeps its results"
METHOD = "measured: the rewrite was applied in memory, and ran in turn with the program as it is"


def try_rewrites(
    target: Target,
    diagnosis: Diagnosis,
    *,
    budget_s: Seconds = 20.0,
    step_s: Seconds = 0.0,
    progress: Progress | None = None,
    now: Callable[[], Seconds] = time.monotonic,
) -> Diagnosis:
    """Try the rewrites of the first findings that have one, and put what was measured beside what was predicted.

    A rewrite that gives other results, fails or is no faster is said to, and is no longer advised. No file is written.

    Args:
        target: the program that the diagnosis is of; a workload, no script.
        diagnosis: findings with their advice.
        budget_s: for all comparisons; loading the target and first calls do not count, but no other rewrite is begun after it.
        step_s: what a step took when it was measured, so that long steps are given the time that they need.
        progress: told how far it is.
        now: a clock.
    """
    chosen = [finding for finding in diagnosis.findings if _can_be_tried(finding.advice)]
    wanted = list(dict.fromkeys(map(_change, chosen)))[:MOST_TRIED]
    if not wanted:
        return replace(diagnosis, notes=[*diagnosis.notes, NOTHING])
    work, begin = load_workload(target), now()
    share_s = max(MIN_BUDGET_S, budget_s / len(wanted), min(ENOUGH_STEPS * step_s, MOST_S))
    trials: dict[tuple[str, ...], Trial] = {}
    for number, change in enumerate(wanted):
        if number and now() - begin > budget_s:
            break
        finding = next(finding for finding in chosen if _change(finding) == change)
        if progress is not None:
            progress(number / len(wanted), f"trying {finding.code} {finding.name}")
        trials[change] = _tried(target, work, finding, share_s)
    told = [_with_trial(finding, trials.get(_change(finding))) for finding in diagnosis.findings]
    left = len(set(map(_change, chosen))) - len(trials)
    why = (
        f"{MOST_TRIED} are the most"
        if len(trials) == MOST_TRIED
        else f"the budget of {budget_s:g} s was spent"
    )
    notes = [f"{counted(left, 'more rewrite')} could be tried: {why}"] if left else []
    return replace(diagnosis, findings=_in_order(told), notes=[*diagnosis.notes, *notes])


def _can_be_tried(advice: Advice) -> bool:
    return advice.replaces is not None and advice.rewrite is not None and advice.fix_class in TRIED


def _change(finding: Finding) -> tuple[str, ...]:
    """What identifies an edit: two findings may ask for the same one."""
    advice, place = finding.advice, finding.advice.where or finding.where
    return str(place.file), advice.replaces or "", advice.rewrite or ""


def _tried(target: Target, work: Workload, finding: Finding, budget_s: Seconds) -> Trial:
    """Load the target with the rewrite, compare results, and then times."""
    outcome = functools.partial(Trial, predicted=finding.advice.gain)
    try:
        rewritten = load_edited(target, _edited(target, finding))
        error = output_error(with_fixed_inputs(rewritten), with_fixed_inputs(work), tolerance_of(work))
        if error is not None and not error.within_tolerance:
            return outcome(
                outcome="differs", max_rel=error.max_rel, said=f"the results differ: {_difference(error)}"
            )
        verdict = compared(work, rewritten, budget_s)
    except (PyrometerError, OSError) as failure:
        return outcome(outcome="failed", said=f"the rewritten program could not be run: {failure}")
    return outcome(
        outcome=verdict.outcome,
        ratio=verdict.ratio,
        ratio_low=verdict.ci_low,
        ratio_high=verdict.ci_high,
        max_rel=None if error is None else error.max_rel,
        said=f"{_told(verdict)}; {_alike(error, finding.advice)}",
    )


def compared(work: Workload, rewritten: Workload, budget_s: Seconds) -> Verdict:
    """Run both in turn, in mirrored blocks of random order, until that decides or the budget is spent.

    Time in which others had the processor does not count: then it would be decided by nothing but how busy the machine is.
    """
    with contextlib.ExitStack() as stack:
        sides = open_sides(stack, [work, rewritten])
        if sides[0].clock.name == "wall":
            patient = PatientClock()
            for side in sides:
                side.clock = patient
        trial = PairedTrial(sides, RULE, budget_s, seed=0, progress=None)
        trial.run()
        return conclude(trial, 1)


def _edited(target: Target, finding: Finding) -> dict[Path, str]:
    """The text of the finding's file with the rewrite."""
    place = finding.advice.where or finding.where
    file = Path(target.spec.cwd, place.file or "").resolve()
    return {file: apply_rewrite(file.read_text(encoding="utf-8"), finding.advice, place.line or 1)}


def _told(verdict: Verdict) -> str:
    """The verdict in its words; of an undecided one also where it stands."""
    if verdict.outcome != "undecided" or verdict.ci_low is None or verdict.ci_high is None:
        return sentence(verdict)
    return f"{sentence(verdict)}; so far {format_ratio(verdict.ratio, verdict.ci_low, verdict.ci_high)}"


def _difference(error: OutputError) -> str:
    return (
        error.mismatch
        or f"by {error.max_rel:.1e} of their largest value, where {error.tolerance:.0e} is legal"
    )


def _alike(error: OutputError | None, advice: Advice) -> str:
    if error is None:
        return "its results are random, and were not compared"
    if error.max_rel == 0:
        return "the results are the same, bit by bit"
    also = ", though they should be the same bit by bit" if advice.fix_class == "exact" else ""
    return f"the results differ by {error.max_rel:.1e} of their largest value{also}"


def _with_trial(finding: Finding, trial: Trial | None) -> Finding:
    """The finding with what was measured; without its rewrite where that did not prove itself."""
    if trial is None:
        return finding
    gain = None
    if trial.ratio_low is not None and trial.ratio_high is not None:
        gain = Gain(ratio_low=trial.ratio_low, ratio_high=trial.ratio_high, measured=True, method=METHOD)
    advice = replace(finding.advice, gain=gain or (trial.predicted if trial.outcome in ADVISED else None))
    if trial.outcome in ADVISED:
        return replace(finding, advice=advice, trial=trial)
    if trial.outcome != "same":
        advice = replace(advice, rewrite=None, replaces=None)
    severity = finding.severity if finding.severity == "error" else "info"
    return replace(finding, advice=advice, severity=severity, trial=trial)


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    """What did not prove itself stands behind all else."""
    return sorted(
        findings, key=lambda finding: finding.trial is not None and finding.trial.outcome not in ADVISED
    )
