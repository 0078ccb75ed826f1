"""Global magnitude pruning, as guides describe it: what it does to the numbers, since it does nothing for the time."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.workload.parts import copied_module


class MagnitudePruned(NamedTuple):
    """A model with small weights set to zero.

    Attributes:
        model: a copy.
        zeros: share of zeros by weight, over all weights of linear layers and convolutions.
    """

    model: nn.Module
    zeros: dict[str, float]


def prune_magnitude(model: nn.Module, share: float) -> MagnitudePruned:
    """A copy of a model in which the smallest weights of all layers together are zero.

    It tells how much of a model is redundant. No step becomes faster, since kernels multiply zeros like other numbers; the lever
    `prune_channels` takes whole channels out.

    Args:
        model: left as it is.
        share: of the weights of linear layers and convolutions, above 0 and below 1.

    Raises:
        InputError: another share, or a model without such layers.
    """
    if not 0 < share < 1:
        raise InputError(f"share: got {share}; legal is above 0 and below 1, for example 0.3")
    copied = copied_module("model", model)
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    weights = {
        f"{name}.weight" if name else "weight": module.weight
        for name, module in copied.named_modules()
        if isinstance(module, kinds)
    }
    if not weights:
        raise InputError("model: it has neither linear layers nor convolutions; there is nothing to prune")
    with torch.no_grad():
        sizes = torch.cat([weight.detach().abs().flatten().float().cpu() for weight in weights.values()])
        limit = float(sizes.kthvalue(max(1, int(share * sizes.numel()))).values)
        for weight in weights.values():
            weight.masked_fill_(weight.abs() <= limit, 0.0)
        zeros = {name: float((weight == 0).float().mean()) for name, weight in weights.items()}
    return MagnitudePruned(copied, zeros)
