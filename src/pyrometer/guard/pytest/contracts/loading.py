"""`max_data_share`: a training does not wait for its loader."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pyrometer.bench.clock import Clock, clock_for
from pyrometer.bench.quantiles import mean_interval
from pyrometer.errors import InputError
from pyrometer.guard.pytest.program import opened
from pyrometer.guard.pytest.result import ContractOutcome, ContractResult
from pyrometer.loading.pipeline import observe_loading
from pyrometer.quantity import Ratio, Seconds, counted, format_percent
from pyrometer.workload.failure import user_code
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Mark, Workload

MIN_STEPS = 20
MOST_STEPS = 2000
PREFETCH = 2
CONFIDENCE = 0.99
EXPLAINED_S = 3.0


def keeps_data_share(work: Workload, most: Ratio, budget_s: Seconds) -> ContractResult:
    """Time the phases of steps.

    Raises:
        InputError: no training, or a share or budget that is not legal.
        UserProgramError: the loader or the training failed.
    """
    if not isinstance(work, Training):
        raise InputError(
            f"max_data_share: got a workload of kind {type(work).__name__}; a pm.Training has a loader"
        )
    if not (0 < most < 1 and budget_s > 0):
        raise InputError(
            f"max_data_share: share {most}, budget {budget_s} s; write a share such as '20%', and a budget above 0 s"
        )
    if isinstance(work.batches, (list, tuple)):
        kind = type(work.batches).__name__
        return _result(
            work, most, None, ("refused", f"the batches are a {kind} in memory: nothing is loaded")
        )
    data_s, total_s = _timed_steps(work, budget_s)
    share, low, high = share_of(data_s, total_s)
    outcome: ContractOutcome = "undecided"
    if high <= most or low > most:
        outcome = "kept" if high <= most else "broken"
    reason = (
        None if outcome != "undecided" else "the interval reaches over the limit; allow more with budget="
    )
    return _result(work, most, (share, low, high, len(data_s)), (outcome, reason))


def share_of(data_s: list[Seconds], total_s: list[Seconds]) -> tuple[Ratio, Ratio, Ratio]:
    """The share of all time that went to data, with its interval.

    Batches come in bursts, so that the mean of single shares would be another figure.

    >>> share, low, high = share_of([0.0, 0.0, 0.0, 4.0] * 10, [1.0, 1.0, 1.0, 5.0] * 10)
    >>> share, low < 0.5 < high
    (0.5, True)
    """
    data, total = np.asarray(data_s), np.asarray(total_s)
    share = float(data.sum() / total.sum())
    low, high = mean_interval((data - share * total) / total.mean(), CONFIDENCE)
    return share, max(share + low, 0.0), min(share + high, 1.0)


def _timed_steps(work: Training, budget_s: Seconds) -> tuple[list[Seconds], list[Seconds]]:
    """What data and the whole step take, step by step, once the loader's queue is no longer that of the start."""
    ahead = getattr(work.batches, "num_workers", 0) * (
        getattr(work.batches, "prefetch_factor", None) or PREFETCH
    )
    data_s: list[Seconds] = []
    total_s: list[Seconds] = []
    with opened(work) as session:
        clock = clock_for(session.device)
        ends_ns = clock.host_ns() + int(budget_s * 1e9)
        while len(total_s) < ahead + MIN_STEPS or (len(total_s) < MOST_STEPS and clock.host_ns() < ends_ns):
            clock.synchronize()
            marks = [("", clock.host_ns())]
            with user_code("a training step"):
                session.phased_step(_marking(marks, clock))
            clock.synchronize()
            data_s.append(
                1e-9 * sum(end - start for (_, start), (phase, end) in pairwise(marks) if phase == "data")
            )
            total_s.append(1e-9 * (clock.host_ns() - marks[0][1]))
    return data_s[ahead + 1 :], total_s[ahead + 1 :]


def _marking(marks: list[tuple[str, int]], clock: Clock) -> Mark:
    return lambda phase: marks.append((phase, clock.host_ns()))


def _result(
    work: Training,
    most: Ratio,
    seen: tuple[Ratio, Ratio, Ratio, int] | None,
    told: tuple[ContractOutcome, str | None],
) -> ContractResult:
    share, low, high, steps = seen or (None, None, None, 0)
    report = observe_loading(work, budget_s=EXPLAINED_S) if told[0] == "broken" else None
    return ContractResult(
        contract="max_data_share",
        workload=work.name,
        outcome=told[0],
        promised=f"getting batches takes at most {format_percent(most)} of a step",
        measured=f"{format_percent(share)} ({format_percent(low)} to {format_percent(high)} at {format_percent(CONFIDENCE)} confidence, {counted(steps, 'step')})"
        if seen
        else "no batch was loaded",
        limit=most,
        value=share,
        low=low,
        high=high,
        unit="share",
        reason=told[1],
        where=[] if report is None else [report.sentence, *(advice.title for advice in report.advice[:1])],
        advice="print(pm.tune_loader(loader)) finds better settings" if told[0] == "broken" else None,
    )
