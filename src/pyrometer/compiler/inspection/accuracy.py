"""Does the compiled program compute what the eager one does?"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch

from pyrometer.bench.matrix.cell import OutputError
from pyrometer.bench.matrix.numerics import output_error, tolerance_for, with_fixed_inputs
from pyrometer.compiler.inspection.candidates import model_of
from pyrometer.compiler.inspection.outputs import with_plain_outputs
from pyrometer.errors import PyrometerError
from pyrometer.workload.inference import Inference, devices_of
from pyrometer.workload.inputs import is_shape_list
from pyrometer.workload.workload import Workload

RANDOM = "numerics: the eager outputs differ from themselves under another random state, or hold no number"

MOST_SHAPES = 8


class Accuracy(NamedTuple):
    """The error, or why there is none."""

    error: OutputError | None
    unavailable: str = ""


def compare_outputs(
    compiled: Workload, as_eager: Callable[[Workload], Workload], tolerance: float
) -> Accuracy:
    """Run both on the same inputs from the same random state; of a list of shapes the first eight, the worst counts.

    Args:
        compiled: the work as it is compiled.
        as_eager: makes the eager reference of it, whose inputs are fixed by then.
        tolerance: largest legal relative error.
    """
    worst: OutputError | None = None
    try:
        for work in _with_each_shape(compiled):
            fixed = with_fixed_inputs(work)
            error = output_error(with_plain_outputs(fixed), with_plain_outputs(as_eager(fixed)), tolerance)
            if error is None:
                return Accuracy(None, RANDOM)
            worst = max((each for each in (worst, error) if each is not None), key=_badness)
    except PyrometerError as failure:
        return Accuracy(None, f"numerics: {failure}")
    return Accuracy(worst)


def _with_each_shape(work: Workload) -> list[Workload]:
    """The work with one shape each: which graph runs depends on it."""
    if not isinstance(work, Inference) or not is_shape_list(work.inputs):
        return [work]
    inferences = [copy.copy(work) for _ in work.inputs[:MOST_SHAPES]]
    for inference, shape in zip(inferences, work.inputs, strict=False):
        inference.inputs = [shape]
    return [*inferences]


def _badness(error: OutputError) -> tuple[bool, float]:
    return error.mismatch is not None, error.max_rel


def tolerance_of(work: Workload) -> float:
    """The tolerance of the coarsest dtype that a workload computes in."""
    model = model_of(work)
    device = next(iter(devices_of(model)), torch.device("cpu")) if model is not None else torch.device("cpu")
    chosen = [name for name in (work.config.autocast, work.config.dtype) if name]
    dtypes = chosen or _dtypes(work) or ["float32"]
    return max(tolerance_for(dtype, device) for dtype in dtypes)


def _dtypes(work: Workload) -> list[str]:
    model = model_of(work)
    tensors = [] if model is None else [*model.parameters(), *model.buffers()]
    return sorted(
        {str(tensor.dtype).removeprefix("torch.") for tensor in tensors if tensor.is_floating_point()}
    )
