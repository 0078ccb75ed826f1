"""`same_outputs`: a changed program still computes the same."""

from __future__ import annotations

import math
from typing import Any

import torch

from pyrometer.bench.matrix.numerics import numeric_error, outputs_of, paired, tolerance_for
from pyrometer.errors import InputError
from pyrometer.guard.pytest.program import workload_of_test
from pyrometer.guard.pytest.result import ContractOutcome, ContractResult
from pyrometer.numerics.tensors import floating_tensors
from pyrometer.quantity import significant
from pyrometer.workload.workload import Workload

ORDER = ("bfloat16", "float16", "float32", "float64")
"""Dtypes, the coarsest first."""


def keeps_outputs(
    work: Workload, expected_from: Any, atol: float | None, rtol: float | None
) -> ContractResult:
    """Run both from the same random state, and compare value by value.

    Raises:
        InputError: a tolerance is negative, or recorded numbers stand beside a training.
        UserProgramError: a step raised.
    """
    for name, value in (("atol", atol), ("rtol", rtol)):
        if value is not None and not (value >= 0 and math.isfinite(value)):
            raise InputError(f"{name}: got {value!r}; a tolerance is a number of 0 or more")
    is_run = isinstance(expected_from, Workload) or _is_function(expected_from)
    reference = workload_of_test(expected_from) if is_run else None
    actual = outputs_of(work, seed=0)
    expected = [expected_from] if reference is None else outputs_of(reference, seed=0)
    if reference is None and len(actual) > 1:
        raise InputError("same_outputs: a training is compared with another one; pass as_=pm.Training(…)")
    is_random = reference is not None and not _alike(outputs_of(reference, seed=1), expected)
    return judge_outputs(work.name, actual, expected, atol=atol, rtol=rtol, is_random=is_random)


def judge_outputs(
    name: str, actual: Any, expected: Any, *, atol: float | None, rtol: float | None, is_random: bool = False
) -> ContractResult:
    """Whether outputs are the same within a tolerance.

    With `atol` or `rtol`, each value may be off by `atol + rtol · |expected|`; without, by a share of the largest value that the
    coarsest dtype of the outputs allows.
    """
    tolerance = tolerance_for(_coarsest(floating_tensors([actual, expected])), torch.device("cpu"))
    error = numeric_error(actual, expected, tolerance)
    pairs = paired(actual, expected)[1]
    within, told = error.within_tolerance, f"{significant(tolerance)} of the largest value"
    if atol is not None or rtol is not None:
        a, r = atol or 0.0, rtol or 0.0
        close = all(bool(((one - other).abs() <= a + r * other.abs()).all()) for one, other in pairs)
        within, told = error.mismatch is None and close, f"{a:g} + {r:g} · |expected|"
    outcome: ContractOutcome = "kept" if within else "broken"
    reason = error.mismatch or error.different
    if not error.num_values and error.mismatch is None:
        outcome, reason = "refused", "the reference holds no finite number, so that nothing can be compared"
    elif is_random:
        why = "the reference gives other numbers in another random state"
        outcome, reason = "undecided", f"{why}; seed it, or call model.eval()"
    is_off = outcome == "broken"
    return ContractResult(
        contract="same_outputs",
        workload=name,
        outcome=outcome,
        promised=f"each value differs by at most {told}",
        measured=f"largest difference {error.max_abs:.3g}, {error.max_rel:.3g} of the largest value, "
        f"cosine {error.cosine:.6f}, {error.num_values:,} values",
        limit=tolerance if atol is None and rtol is None else None,
        value=error.max_rel,
        unit="share of the largest value",
        reason=reason,
        where=_worst(pairs) if is_off and reason is None else [],
        advice="pm.watch_numerics(model) names the module where values begin to differ" if is_off else None,
    )


def _is_function(given: Any) -> bool:
    return callable(given) and not isinstance(given, torch.Tensor)


def _alike(one: Any, other: Any) -> bool:
    return numeric_error(one, other, tolerance_for("float32", torch.device("cpu"))).within_tolerance


def _coarsest(tensors: list[torch.Tensor]) -> str:
    names = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors}
    return next((name for name in ORDER if name in names), "float64")


def _worst(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[str]:
    """The value that is furthest off."""
    number = max(range(len(pairs)), key=lambda at: float((pairs[at][0] - pairs[at][1]).abs().amax()))
    ours, theirs = (one.flatten() for one in pairs[number])
    at = int((ours - theirs).abs().argmax())
    return [f"value {at} of output {number}: {float(ours[at]):.6g}, expected {float(theirs[at]):.6g}"]
