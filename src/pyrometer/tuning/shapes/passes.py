"""Passes of a model on padded inputs: timed forward, and backward for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.bench.clock import clock_for
from pyrometer.quantity import Seconds
from pyrometer.tuning.shapes.axes import CallArguments


def device_of(call: CallArguments) -> torch.device:
    """Where the first tensor of a call is."""
    return next(leaf.device for leaf in pytree.tree_leaves(call) if isinstance(leaf, torch.Tensor))


def timed(function: Callable[..., Any], call: CallArguments) -> tuple[Any, Seconds]:
    """The result of a call and its time, with all work on the device done."""
    clock = clock_for(device_of(call))
    clock.synchronize()
    start = clock.host_ns()
    output = function(*call[0], **call[1])
    clock.synchronize()
    return output, (clock.host_ns() - start) * 1e-9


def run_backward(model: Callable[..., Any], output: Any) -> None:
    """Run a backward pass whose gradients go nowhere."""
    outputs = [
        leaf.sum()
        for leaf in pytree.tree_leaves(output)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    wanted = [parameter for parameter in parameters if parameter.requires_grad]
    if outputs and wanted:
        torch.autograd.grad(outputs, wanted, allow_unused=True)
