"""`same_outputs`: a changed program still computes the same."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.matrix.numerics import numeric_error, outputs_of, tolerance_for
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
    reference = (
        workload_of_test(expected_from)
        if isinstance(expected_from, Workload) or _is_function(expected_from)
        else None
    )
    actual = outputs_of(work, seed=0)
    expected = [expected_from] if reference is None else outputs_of(reference, seed=0)
    if reference is None and len(actual) > 1:
        raise InputError(
            "same_outputs: a training is compared with another workload; pass as_=pm.Training(…)"
        )
    is_random = reference is not None and not _alike(outputs_of(reference, seed=1), expected)
    return judge_outputs(work.name, actual, expected, atol=atol, rtol=rtol, is_random=is_random)


def judge_outputs(
    name: str, actual: Any, expected: Any, *, atol: float | None, rtol: float | None, is_random: bool = False
) -> ContractResult:
    """Whether outputs are the same within a tolerance.

    With `atol` or `rtol`, each value may be off by `atol + rtol · |expected|`; without, by a share of the largest value that the
    coarsest dtype of the outputs allows.
    """
    ours, theirs = floating_tensors(actual), floating_tensors(expected)
    tolerance = tolerance_for(_coarsest([*ours, *theirs]), torch.device("cpu"))
    error = numeric_error(actual, expected, tolerance)
    is_default = atol is None and rtol is None
    within = (
        error.within_tolerance
        if is_default
        else error.mismatch is None and _within(actual, expected, atol or 0.0, rtol or 0.0)
    )
    outcome: ContractOutcome = "kept" if within else "broken"
    reason = error.mismatch
    if not any(tensor.isfinite().any() for tensor in _numbers(expected)):
        outcome, reason = "refused", "the reference holds no finite number, so that nothing can be compared"
    elif within and is_random:
        outcome, reason = (
            "undecided",
            "the reference gives other numbers in another random state; seed it, or call model.eval()",
        )
    told = (
        f"{significant(tolerance)} of the largest value"
        if is_default
        else f"{atol or 0:g} + {rtol or 0:g} · |expected|"
    )
    return ContractResult(
        contract="same_outputs",
        workload=name,
        outcome=outcome,
        promised=f"each value differs by at most {told}",
        measured=f"largest difference {error.max_abs:.3g}, {error.max_rel:.3g} of the largest value, cosine {error.cosine:.6f}, "
        f"{error.num_values:,} values",
        limit=tolerance if is_default else None,
        value=error.max_rel,
        unit="share of the largest value",
        reason=reason,
        where=_worst(actual, expected) if outcome == "broken" and error.mismatch is None else [],
        advice="pm.watch_numerics(model) names the module where values begin to differ"
        if outcome == "broken"
        else None,
    )


def _is_function(given: Any) -> bool:
    return callable(given) and not isinstance(given, torch.Tensor)


def _alike(one: Any, other: Any) -> bool:
    return numeric_error(one, other, tolerance_for("float32", torch.device("cpu"))).within_tolerance


def _coarsest(tensors: list[torch.Tensor]) -> str:
    names = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors}
    return next((name for name in ORDER if name in names), "float64")


def _numbers(values: Any) -> list[torch.Tensor]:
    return [
        torch.as_tensor(leaf).detach().cpu()
        for leaf in pytree.tree_leaves(values)
        if isinstance(leaf, (torch.Tensor, int, float))
    ]


def _excess(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num((actual.to(torch.float64) - expected.to(torch.float64)).abs())


def _within(actual: Any, expected: Any, atol: float, rtol: float) -> bool:
    pairs = zip(_numbers(actual), _numbers(expected), strict=True)
    return all(
        bool((_excess(one, other) <= atol + rtol * torch.nan_to_num(other.to(torch.float64)).abs()).all())
        for one, other in pairs
    )


def _worst(actual: Any, expected: Any) -> list[str]:
    """The value that is furthest off."""
    pairs = [
        (one, other) for one, other in zip(_numbers(actual), _numbers(expected), strict=True) if one.numel()
    ]
    number, (one, other) = max(enumerate(pairs), key=lambda entry: float(_excess(*entry[1]).max()))
    flat = int(_excess(one, other).argmax())
    index = tuple(int(place) for place in torch.unravel_index(torch.tensor(flat), one.shape))
    return [
        f"value {list(index)} of output {number}: {float(one[index]):.6g}, expected {float(other[index]):.6g}"
    ]
