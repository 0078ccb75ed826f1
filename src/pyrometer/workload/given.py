"""What users hand to a function that needs a workload: one, or a model and its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.workload.inference import Inference
from pyrometer.workload.inputs import Arguments, is_shape_list
from pyrometer.workload.workload import Workload, require_workload


def workload_of(given: Workload | nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Workload:
    """The workload itself; of a model and its inputs, their forward pass.

    A single input may have any form that `Inference` takes; several are the arguments of the call.

    Raises:
        InputError: inputs beside a workload, a model without inputs, inputs that its `forward` does not take, or neither.

    >>> workload_of(nn.Linear(4, 2), (torch.zeros(8, 4),), {}).name
    'Linear'
    """
    if not isinstance(given, nn.Module):
        require_workload(given)
        if args or kwargs:
            extra = next(iter(kwargs), f"{len(args)} inputs")
            raise InputError(
                f"{extra}: not an argument beside a workload, which has its inputs already; leave it out"
            )
        return given
    if not args and not kwargs:
        raise InputError(
            f"{type(given).__name__}: a model needs inputs; pass them after it, as in (model, x)"
        )
    if len(args) == 1 and not kwargs and _is_form(args[0]):
        return Inference(given, args[0])
    _require_fit(given, args, kwargs)
    return Inference(given, Arguments(args, dict(kwargs)))


def _is_form(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, tuple, Mapping)) or callable(value) or is_shape_list(value)


def _require_fit(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """A mistyped option would else reach the model, and fail there as the user's own fault."""
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):  # an exported or scripted module tells none
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InputError(
            f"{type(model).__name__}.forward{signature}: {error}; pass what it takes, and options by their names"
        ) from error
