"""The place of each operator, as it runs under a dispatch mode."""

from __future__ import annotations

from typing import NamedTuple

import torch

from pyrometer.workload.whereabouts.autograd_sequence import current_node, last_number
from pyrometer.workload.whereabouts.lines import CodePoint
from pyrometer.workload.whereabouts.modules import ModuleStack
from pyrometer.workload.whereabouts.nearest import nearest_point


class Whereabouts(NamedTuple):
    """Where an operator runs; in the backward pass, where the forward operator ran that it belongs to."""

    point: CodePoint | None
    """The nearest line that is not torch's."""
    module: str | None
    """Path of the module whose forward is running."""
    node: str | None
    """The autograd node that is being evaluated."""
    backward: bool
    """A gradient is computed; a forward pass that a node computes again is none."""


class Following:
    """Tells where operators run, and remembers it of forward ones for the backward pass.

    Args:
        modules: whose forward is running.
    """

    def __init__(self, modules: ModuleStack) -> None:
        self._modules = modules
        self._forward: dict[int, tuple[CodePoint | None, str | None]] = {}

    def here(self) -> Whereabouts:
        """Where the operator is that is being dispatched."""
        node = current_node()
        name = node[1] if node is not None else None
        if node is not None and not torch.is_grad_enabled():
            return Whereabouts(*self._forward.get(node[0], (None, None)), name, backward=True)
        point, module = nearest_point(), self._modules.innermost
        number = last_number() if torch.is_grad_enabled() else None
        if number is not None:
            # The operator of a node is the first to run after it was numbered; others may follow without a node.
            self._forward.setdefault(number, (point, module))
        return Whereabouts(point, module, name, backward=False)

    def forget(self) -> None:
        """Forget the forward operators: their backward pass is over."""
        self._forward.clear()
