"""Running a plan: does it compute the same, and what does it take?"""

from __future__ import annotations

import torch

from pyrometer.errors import PyrometerError
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.memory.recording.steps import STEPS, record_steps
from pyrometer.quantity import Bytes
from pyrometer.tuning.checkpointing.record import GradientMatch
from pyrometer.workload.changes.results import Tensors, results_of
from pyrometer.workload.workload import Workload

ROUNDING = 64
"""Differences up to so many units in the last place are rounding: operators may add in another order."""


def measured_peak(work: Workload) -> Bytes:
    """The most bytes that two steps hold at one instant: tensors, and what operators take for themselves meanwhile.

    As a profile counts it: where the allocator's account cannot be had, tensors alone.
    """
    tensors = record_steps(work).peak_bytes
    try:
        return max(tensors, record_allocator(work, steps=STEPS).peak_bytes)
    except PyrometerError:  # another profiler is at work, which stands in its way
        return tensors


def match_gradients(baseline: Workload, planned: Workload, *, seed: int = 0) -> GradientMatch:
    """Compare gradients and buffers of two steps each, begun with the same random state.

    Raises:
        UserProgramError: a step raised.
    """
    first, second = results_of(baseline, seed), results_of(baseline, seed)
    return match_results(first, second, results_of(planned, seed))


def match_results(first: Tensors, second: Tensors, planned: Tensors) -> GradientMatch:
    """Compare results with those of two runs as written, of which the second shows what the program itself varies."""
    own, _, _ = _distance(first, second)
    error, worst, bitwise = _distance(first, planned)
    allowed = max(2 * own, ROUNDING * _epsilon(first))
    return GradientMatch(
        bitwise=bitwise, max_error=error, worst=worst, baseline_error=own, equal=error <= allowed
    )


def _distance(one: Tensors, other: Tensors) -> tuple[float, str | None, bool]:
    """Largest relative difference, where it is, and whether all is equal to the last bit."""
    error, worst, bitwise = 0.0, None, len(one) == len(other)
    for step, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        for name in dict.fromkeys([*mine, *theirs]):
            apart = _apart(mine.get(name), theirs.get(name))
            bitwise = bitwise and apart == 0
            if apart > error:
                error, worst = apart, f"{name} in step {step}"
    return error if len(one) == len(other) else float("inf"), worst, bitwise


def _apart(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    if a is None or b is None or a.shape != b.shape:
        return float("inf")
    if torch.equal(a, b) or (
        torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())
    ):
        return 0.0
    largest = float(a.abs().max())
    difference = float((a.to(torch.float64) - b.to(torch.float64)).abs().max())
    return difference / largest if largest > 0 else float("inf")


def _epsilon(results: Tensors) -> float:
    kinds = {tensor.dtype for step in results for tensor in step.values() if tensor.is_floating_point()}
    return max((torch.finfo(kind).eps for kind in kinds), default=0.0)
