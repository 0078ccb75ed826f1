"""The forms that a training loss may take, brought to one: a function of model and batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.workload.inputs import Arguments, as_arguments

BatchLoss: TypeAlias = Callable[[nn.Module, Any], torch.Tensor]


def batch_loss(loss: Callable[..., torch.Tensor] | None) -> BatchLoss:
    """Bring `loss` to a function of the model and a batch.

    A function whose first parameter is called `model` is that already; `loss(output, target)` takes batches that are
    `(input, target)` pairs; `None` takes the `loss` that the model's output holds.
    """
    if loss is None:
        return _loss_of_output
    if _takes_model(loss):
        return loss
    return lambda model, batch: _paired_loss(model, batch, loss)


def batch_arguments(batch: Any) -> Arguments:
    """A batch as the inputs whose units are counted: a list is what a `DataLoader` makes of a tuple."""
    if isinstance(batch, (torch.Tensor, tuple, Mapping)):
        return as_arguments(batch)
    return Arguments(tuple(batch) if isinstance(batch, list) else (batch,), {})


def _takes_model(loss: Callable[..., Any]) -> bool:
    if isinstance(loss, nn.Module):
        return False
    try:
        parameters = list(inspect.signature(loss).parameters)
    except (TypeError, ValueError):
        return False  # a builtin without a signature
    return bool(parameters) and parameters[0] == "model"


def _loss_of_output(model: nn.Module, batch: Any) -> torch.Tensor:
    arguments = batch_arguments(batch)
    output = model(*arguments.args, **arguments.kwargs)
    tensor = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if not isinstance(tensor, torch.Tensor):
        raise InputError(
            f"loss: none given, and the model's output ({type(output).__name__}) holds no loss; "
            "give loss(output, target) or loss(model, batch)"
        )
    return tensor


def _paired_loss(model: nn.Module, batch: Any, loss: Callable[..., torch.Tensor]) -> torch.Tensor:
    if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
        size = f" of {len(batch)}" if isinstance(batch, (tuple, list)) else ""
        raise InputError(
            f"batches: got a batch that is a {type(batch).__name__}{size}; loss(output, target) needs "
            "(input, target) pairs; for anything else write loss(model, batch)"
        )
    arguments = batch_arguments(batch[0])
    return loss(model(*arguments.args, **arguments.kwargs), batch[1])
