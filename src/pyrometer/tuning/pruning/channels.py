"""Taking channels out of layers, and out of all that reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from pyrometer.tuning.pruning.chains import Chain

STEP = 8
"""Numbers of channels that are kept are multiples of it, as vector units and kernels like them, where that still takes some out."""

ROOM = "channels_before_pruning"
"""Attribute of a cut layer: how many it had."""


def remove_channels(chain: Chain, share: float) -> None:
    """Take out the channels whose weights have the least L2 norm; the modules are changed in place."""
    layer: Any = chain.layer
    channels = layer.weight.shape[0]
    kept = num_kept(channels, share)
    strength = layer.weight.detach().flatten(1).norm(dim=1)
    index = strength.topk(kept).indices.sort().values
    setattr(layer, ROOM, channels)
    _cut(layer, ("weight", "bias"), index)
    setattr(layer, "out_features" if isinstance(layer, nn.Linear) else "out_channels", kept)
    for norm in chain.norms:
        _cut(norm, ("weight", "bias", "running_mean", "running_var"), index)
        setattr(norm, "num_features", kept)  # noqa: B010 - which torch types as a tensor or a module
    wide = (index[:, None] * chain.width + torch.arange(chain.width, device=index.device)).flatten()
    _cut(chain.consumer, ("weight",), wide, dim=1)
    inputs = "in_features" if isinstance(chain.consumer, nn.Linear) else "in_channels"
    setattr(chain.consumer, inputs, len(wide))


def num_kept(channels: int, share: float) -> int:
    """How many channels are left of a layer.

    >>> num_kept(64, 0.25), num_kept(60, 0.25), num_kept(16, 0.25), num_kept(5, 0.5), num_kept(1, 0.5)
    (48, 48, 12, 2, 1)
    """
    kept = max(1, round(channels * (1 - share)))
    rounded = -(-kept // STEP) * STEP
    return rounded if rounded < channels else kept


def _cut(module: nn.Module, names: Iterable[str], index: torch.Tensor, dim: int = 0) -> None:
    for name in names:
        old = getattr(module, name, None)
        if isinstance(old, nn.Parameter):
            new = old.detach().index_select(dim, index)
            setattr(module, name, nn.Parameter(new, requires_grad=old.requires_grad))
        elif isinstance(old, torch.Tensor):
            setattr(module, name, old.index_select(dim, index))
