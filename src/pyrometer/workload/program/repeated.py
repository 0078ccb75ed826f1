"""The repeated parts of a model."""

from __future__ import annotations

from torch import nn

LEAST_BLOCKS = 2
"""Modules of one class in a list that are taken to be the repeated part of a model."""


def blocks(model: nn.Module) -> list[nn.Module]:
    """The repeated parts of a model, as they are sharded one by one: entries of lists of modules of the same class.

    >>> blocks(nn.Sequential(nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]), nn.ReLU()))
    [Linear(in_features=2, out_features=2, bias=True), Linear(in_features=2, out_features=2, bias=True)]
    """
    for module in model.modules():  # the outermost come first
        if isinstance(module, (nn.ModuleList, nn.Sequential)):
            children = [child for child in module if any(True for _ in child.parameters())]
            alike = [child for child in children if type(child) is type(children[0])]
            if len(alike) >= LEAST_BLOCKS:
                return alike
    return []
