"""Comparing workloads: paired, interleaved, with random order, stopped as soon as it is decided."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from pyrometer.bench.clock import Clock
from pyrometer.bench.comparison.conclusion import conclude
from pyrometer.bench.comparison.decision import (
    DEFAULT_CONFIDENCE,
    DEFAULT_MARGIN,
    LOOKS,
    THOROUGH_LOOKS,
    THOROUGH_MARGIN,
    DecisionRule,
)
from pyrometer.bench.comparison.trial import Trial, open_sides
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.stage import Progress
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload, require_workload

DEFAULT_BUDGET_S = 30.0
THOROUGH_BUDGET_S = 120.0


def compare(
    a: Workload,
    b: Workload,
    *,
    budget_s: Seconds | None = None,
    margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    thorough: bool = False,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Decide whether `b` is faster than, slower than, or the same as `a`.

    Both sides run in turn in one process, in blocks of random order. What is compared (fastest call, CPU time,
    device time) is fixed after the warm-up and before the first block. The verdict may be `undecided`.

    Args:
        a: the baseline.
        b: the candidate; the ratio is its time over the baseline's.
        budget_s: no block is begun after so many seconds; first calls (compilation) do not count. 30 s by default.
        margin: half-width of the zone that is called the same, 0.05 by default.
        confidence: coverage of the interval; false alarms are rarer than one minus this.
        seed: of the coin that orders the blocks.
        thorough: look at up to 640 blocks (1,280 of steps above 3 ms) in 120 s, with a margin of 0.02.
        clock: by default the right one for the device.
        progress: told how far it is, between blocks.

    Raises:
        InputError: a side cannot be prepared, one infers and the other trains, the sides are on different devices, or the time of a side is not that of its
            work: it returns what has yet to run, puts work off to a thread, or keeps its answers by the identity of inputs.
        UserProgramError: a step raised.

    >>> import pyrometer as pm, torch
    >>> work = pm.Inference(torch.nn.Linear(8, 2), torch.randn(4, 8))
    >>> pm.compare(work, work, budget_s=2).outcome in {"same", "undecided"}
    True
    """
    verdicts = compare_many(
        a,
        [b],
        budget_s=budget_s,
        margin=margin,
        confidence=confidence,
        seed=seed,
        thorough=thorough,
        clock=clock,
        progress=progress,
    )
    return verdicts[0]


def compare_many(
    baseline: Workload,
    candidates: Sequence[Workload],
    *,
    budget_s: Seconds | None = None,
    margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    thorough: bool = False,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Compare several candidates against one baseline in the same blocks; see `compare`.

    All sides are rotated within each block. The error probability is shared among the candidates, so that the chance of
    any false alarm in the whole list stays below one minus `confidence`.
    """
    if not candidates:
        raise InputError("compare: no candidate; give at least one workload to compare with the baseline")
    for work in (baseline, *candidates):
        require_workload(work)
    _require_same_job(baseline, candidates)
    rule = DecisionRule(
        confidence=confidence,
        margin=margin if margin is not None else (THOROUGH_MARGIN if thorough else DEFAULT_MARGIN),
        looks=THOROUGH_LOOKS if thorough else LOOKS,
        num_comparisons=len(candidates),
    )
    limit_s = budget_s if budget_s is not None else (THOROUGH_BUDGET_S if thorough else DEFAULT_BUDGET_S)
    if not limit_s > 0:
        raise InputError(f"budget: got {limit_s} s; it must be positive, for example 20 s")
    with contextlib.ExitStack() as stack:
        sides = open_sides(stack, [baseline, *candidates], clock)
        trial = Trial(sides, rule, limit_s, seed, progress, strict=True)
        trial.run()
        return [conclude(trial, candidate) for candidate in range(1, len(sides))]


def _require_same_job(baseline: Workload, candidates: Sequence[Workload]) -> None:
    """A forward pass is no faster training step; what a `Call` does is not known before it runs."""
    for candidate in candidates:
        if {
            isinstance(work, Training)
            for work in (baseline, candidate)
            if isinstance(work, (Inference, Training))
        } == {False, True}:
            raise InputError(
                f"compare: the baseline is of kind {type(baseline).__name__} and the candidate of kind {type(candidate).__name__}, "
                "whose steps do different jobs; compare two Inference or two Training workloads"
            )
