"""An output beside that of a reference: value by value, and as distributions.

The error and its tolerance per dtype are those of `pyrometer.bench.matrix.numerics`. A shift of the distribution is told
beside, since outputs may differ in every digit and still mean the same, or drift together within the tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from pyrometer.bench.comparison.interleaving import seed_all
from pyrometer.bench.matrix.numerics import numeric_error, tolerance_for, with_fixed_inputs
from pyrometer.numerics.report import OutputShift
from pyrometer.numerics.statistics import Values, sample
from pyrometer.numerics.tensors import floating_tensors
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference

LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
LOW = ("float16", "bfloat16")
MOST_VALUES = 65_536


def shift_of(
    expected: Any, actual: Any, *, reference: str, changed: str, dtype: str | None = None
) -> OutputShift:
    """Compare two outputs of any nesting.

    Args:
        expected: what the reference returned.
        actual: what the changed program returned.
        reference: what it is, in words.
        changed: what that is.
        dtype: sets the tolerance; by default the coarsest of the changed outputs.
    """
    theirs, ours = floating_tensors(expected), floating_tensors(actual)
    device = ours[0].device if ours else torch.device("cpu")
    error = numeric_error(actual, expected, tolerance_for(dtype or _coarsest(ours), device))
    pairs = list(zip(theirs, ours, strict=False)) if error.mismatch is None else []
    samples = [_finite(sample(one, MOST_VALUES), sample(other, MOST_VALUES)) for one, other in pairs]
    samples = [pair for pair in samples if pair[0].size]
    return OutputShift(
        reference=reference,
        changed=changed,
        max_abs=error.max_abs,
        max_rel=error.max_rel,
        cosine=error.cosine,
        tolerance=error.tolerance,
        within_tolerance=error.within_tolerance,
        mismatch=error.mismatch,
        quantile_shift=max((_quantile_shift(*pair) for pair in samples), default=None),
        distribution_distance=max((_distance(*pair) for pair in samples), default=None),
        same_top=min((top for pair in pairs if (top := _same_top(*pair)) is not None), default=None),
    )


def precision_shift(work: Inference) -> OutputShift | None:
    """Compare a model that computes in low precision with itself in float32; `None` where there is nothing to compare.

    Raises:
        PyrometerError: one of them cannot be run.
    """
    changed = low_precision(work)
    if changed is None:
        return None
    fixed = with_fixed_inputs(work)
    exact = fixed.variant(dtype="float32", autocast=None, mode=None)
    expected = _step_output(exact, seed=0)
    if not numeric_error(
        _step_output(exact, seed=1), expected, tolerance_for("float32", torch.device("cpu"))
    ).within_tolerance:
        return None  # random outputs
    actual = _step_output(fixed, seed=0)
    return shift_of(expected, actual, reference="the same in float32", changed=changed, dtype=changed)


def low_precision(work: Inference) -> str | None:
    """The half dtype that a workload computes in: that of its autocast, else of its parameters."""
    if work.config.autocast is not None:
        return work.config.autocast
    dtypes = {work.config.dtype} if work.config.dtype else {str(p.dtype)[6:] for p in work.model.parameters()}
    return next((name for name in LOW if name in dtypes), None)


def _step_output(work: Inference, seed: int) -> Any:
    with work.open() as session:
        session.activate()
        seed_all(seed)
        with user_code("the step"):
            return session.step(session.prepare())


def _coarsest(tensors: Iterable[torch.Tensor]) -> str:
    names = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors}
    return next((name for name in ("bfloat16", "float16", "float32") if name in names), "float64")


def _finite(one: Values, other: Values) -> tuple[Values, Values]:
    both = np.isfinite(one) & np.isfinite(other)
    return one[both], other[both]


def _quantile_shift(expected: Values, actual: Values) -> float:
    spread = float(expected.std()) or float(np.abs(expected).max()) or 1.0
    return float(np.abs(np.quantile(actual, LEVELS) - np.quantile(expected, LEVELS)).max() / spread)


def _distance(expected: Values, actual: Values) -> float:
    """Largest difference of the two empirical distribution functions."""
    at = np.concatenate([expected, actual])
    below = [
        np.searchsorted(np.sort(values), at, side="right") / values.size for values in (expected, actual)
    ]
    return float(np.abs(below[0] - below[1]).max())


def _same_top(expected: torch.Tensor, actual: torch.Tensor) -> float | None:
    if expected.dim() < 2 or expected.shape[-1] < 2:
        return None
    return float((expected.argmax(-1).cpu() == actual.argmax(-1).cpu()).double().mean())
