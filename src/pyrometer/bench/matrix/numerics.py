"""Does a faster variant still compute the same? The error of an output against that of a reference.

Outputs may be any nesting of tensors. Errors are relative to the largest magnitude of the tensor that they are in, not to
each value: next to a zero every value is infinitely wrong. Whole numbers, such as a class that was chosen, have to be the same: the
one beside the right one is as wrong as any.

How much error is legal depends on the dtype that is computed in. Each tolerance is some tens of times the unit round-off,
which is what summing in another order costs in networks of ordinary depth:

============  =========  =====================================================================================
dtype         tolerance  reason
============  =========  =====================================================================================
``float64``   1e-4       the reference itself is float32
``float32``   1e-4       another order of summation; fused multiply-add
``tf32``      5e-3       float32 on a GPU, whose tensor cores multiply with 10 bits of mantissa
``float16``   5e-3       10 bits of mantissa
``bfloat16``  3e-2       7 bits of mantissa
============  =========  =====================================================================================
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from typing import Any, TypeVar

import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.comparison.interleaving import seed_all
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.bench.sampling import step_failure
from pyrometer.errors import PyrometerError
from pyrometer.quantity import counted
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

W = TypeVar("W", bound=Workload)

TOLERANCES = {"float64": 1e-4, "float32": 1e-4, "tf32": 5e-3, "float16": 5e-3, "bfloat16": 3e-2}
TRAINING_STEPS = 3
_DISCRETE = (torch.int64, torch.int32, torch.int16, torch.bool, int, bool)


def tolerance_for(dtype: str, device: torch.device) -> float:
    """The legal relative error of an output that was computed in `dtype`; one that is not in the table counts as bfloat16.

    >>> tolerance_for("bfloat16", torch.device("cpu"))
    0.03
    """
    name = "tf32" if dtype == "float32" and device.type == "cuda" else dtype
    return TOLERANCES.get(name, TOLERANCES["bfloat16"])


def numeric_error(output: Any, reference: Any, tolerance: float) -> OutputError:
    """How far `output` is from `reference`; both any nesting of tensors and numbers.

    NaN and infinities are equal to themselves at the same place; anywhere else they are a mismatch, as are another nesting or
    another shape.

    >>> error = numeric_error(torch.tensor([1.0, 2.001]), torch.tensor([1.0, 2.0]), tolerance=1e-3)
    >>> round(error.max_rel, 6), error.within_tolerance
    (0.0005, True)
    """
    mismatch, pairs = paired(output, reference)
    discrete = [_is_discrete(leaf) for leaf in pytree.tree_leaves(reference)]
    whole, amounts = [], pairs
    if mismatch is None:
        whole = list(itertools.compress(pairs, discrete))
        amounts = list(itertools.compress(pairs, (not each for each in discrete)))
    different = _different(whole)
    largest = max((_largest(expected) for _, expected in amounts), default=0.0)
    max_abs, max_rel, cosine = 0.0, 0.0, 1.0
    for actual, expected in amounts:
        off = _largest(actual - expected)
        max_abs = max(max_abs, off)
        max_rel = max(max_rel, off / (_largest(expected) or largest or 1.0))
        cosine = min(cosine, _cosine(actual, expected))
    return OutputError(
        max_abs=max_abs,
        max_rel=max_rel,
        cosine=cosine,
        num_values=sum(expected.numel() for _, expected in pairs),
        tolerance=tolerance,
        within_tolerance=mismatch is None and different is None and max_rel <= tolerance,
        mismatch=mismatch,
        different=different,
    )


def output_error(candidate: Workload, reference: Workload, tolerance: float) -> OutputError | None:
    """Run both workloads with the same random state, and compare what they return.

    Both should be variants of one workload `with_fixed_inputs`. For a training workload the losses of three steps in a row
    are compared, so that the update counts too.

    Returns:
        `None` where nothing can be said: the outputs hold no tensor or number, or the reference differs from itself
        under another random state (dropout while training, sampling).

    Raises:
        UserProgramError: a step raised.
    """
    expected = outputs_of(reference, seed=0)
    itself = numeric_error(outputs_of(reference, seed=1), expected, tolerance)
    if itself.num_values == 0 or not itself.within_tolerance:
        return None
    return numeric_error(outputs_of(candidate, seed=0), expected, tolerance)


def with_fixed_inputs(work: W) -> W:
    """The same workload, of which every variant and every session gets the same inputs: the first ones, drawn once."""
    fixed: Any = copy.copy(work)
    with work.open() as session:
        session.activate()
        seed_all(0)
        if (
            isinstance(work, Inference)
            and callable(work.inputs)
            and not isinstance(work.inputs, torch.Tensor)
        ):
            with user_code("making the inputs"):
                fixed.inputs = work.inputs()
        if isinstance(work, Training):
            fixed.batches = _first_batches(work)
    return fixed  # type: ignore[no-any-return]


def _first_batches(work: Training) -> list[Any]:
    with contextlib.closing(BatchStream(work.batches)) as stream, user_code("the batches"):
        return [stream.next() for _ in range(TRAINING_STEPS * work.accumulate)]


def outputs_of(work: Workload, seed: int) -> list[Any]:
    """What the first step of a new session returns, on the CPU; of a training workload the first three.

    Raises:
        UserProgramError: a step raised.
    """
    outputs: list[Any] = []
    with work.open() as session:
        session.activate()
        seed_all(seed)
        for number in range(TRAINING_STEPS if isinstance(work, Training) else 1):
            try:
                output = session.step(session.prepare())
            except PyrometerError:
                raise
            except (Exception, SystemExit) as error:
                raise step_failure(number + 1, error) from error
            outputs.append(pytree.tree_map_only(torch.Tensor, _kept, output))
    return outputs


def _kept(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that the next step cannot overwrite."""
    return tensor.detach().to("cpu", copy=True)


def paired(output: Any, reference: Any) -> tuple[str | None, list[tuple[torch.Tensor, torch.Tensor]]]:
    """What does not match, if anything, and the finite numbers that can be compared, leaf by leaf."""
    (ours, our_nesting), (theirs, their_nesting) = pytree.tree_flatten(output), pytree.tree_flatten(reference)
    if our_nesting != their_nesting:
        return f"another structure: {len(ours)} values for {len(theirs)}, or nested in another way", []
    mismatch, pairs = None, []
    for actual, expected in zip(map(_numbers, ours), map(_numbers, theirs), strict=True):
        if actual.shape != expected.shape:
            mismatch = f"shape {tuple(actual.shape)} for {tuple(expected.shape)}"
            continue
        finite = actual.isfinite() & expected.isfinite()
        alike = (actual == expected) | (actual.isnan() & expected.isnan())
        if not bool((finite | alike).all()):
            mismatch = "NaN or infinity where the reference has another value"
        pairs.append((actual[finite], expected[finite]))
    return mismatch, pairs


def _is_discrete(leaf: Any) -> bool:
    """Whether a leaf holds ids or choices; pixels are amounts."""
    return (leaf.dtype if isinstance(leaf, torch.Tensor) else type(leaf)) in _DISCRETE


def _different(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> str | None:
    differ = sum(int((actual != expected).sum()) for actual, expected in pairs)
    total = sum(expected.numel() for _, expected in pairs)
    return f"{differ} of {counted(total, 'whole number')} differ" if differ else None


def _numbers(leaf: Any) -> torch.Tensor:
    """A leaf as float64 on the CPU; what is no number becomes an empty tensor."""
    if isinstance(leaf, torch.Tensor):
        dense = leaf.detach().to("cpu")
        if dense.is_nested:
            parts = [_numbers(part).reshape(-1) for part in dense.unbind()]
            return torch.cat(parts) if parts else torch.empty(0, dtype=torch.float64)
        dense = dense if dense.layout == torch.strided else dense.to_dense()
        return (torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense).to(torch.float64)
    return torch.tensor([leaf] if isinstance(leaf, (int, float)) else [], dtype=torch.float64)


def _largest(values: torch.Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


def _cosine(actual: torch.Tensor, expected: torch.Tensor) -> float:
    if torch.equal(actual, expected):
        return 1.0
    norms = float(actual.norm() * expected.norm())
    return min(float(actual.flatten() @ expected.flatten()) / norms, 1.0) if norms else 0.0
