"""`linear_activation`: a linear layer and the activation after it in one call of oneDNN."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from pyrometer.tuning.levers.adjacent import adjacent, replace_modules
from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.private import linear_pointwise
from pyrometer.tuning.levers.subject import Subject

_NAMES: dict[type[nn.Module], str] = {
    nn.ReLU: "relu",
    nn.GELU: "gelu",
    nn.SiLU: "swish",
    nn.Tanh: "tanh",
    nn.Sigmoid: "sigmoid",
}


@lever
class LinearActivation(Lever):
    """Compute a linear layer and the activation after it in one call."""

    name = "linear_activation"
    title = "compute linear layers with their activation in one call"
    why = (
        "oneDNN applies the activation while the product is in a cache: one pass over the activations less for each, without a compiler, "
        "which does the same and more."
    )
    stage = "compute"
    place = "structure"
    executors = frozenset({"eager"})
    prior = 0.92

    def refuses(self, subject: Subject) -> str | None:
        """On a CPU, in float32, where an activation reads a linear layer's output."""
        if subject.device.type != "cpu":
            return f"the work is on {subject.device.type}, and the operator is for CPUs"
        if not (
            torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
            and linear_pointwise() is not None
        ):
            return f"torch {torch.__version__} has no such operator of oneDNN"
        if not (subject.has(nn.Linear) and subject.has(*_NAMES)):
            return "the model has no linear layer with an activation module after it"
        return None if _pairs(subject) else "no activation module reads the output of a float32 linear layer"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Put one module in the place of the layer, and `nn.Identity` in that of the activation."""
        replacements: dict[nn.Module, nn.Module] = {}
        for layer, activation in _pairs(subject):
            replacements |= {layer: ActivatedLinear(layer, activation), activation: nn.Identity()}
        replace_modules(subject, replacements)

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The model has such modules, and no pair is left."""
        return None if subject.has(ActivatedLinear) else "each linear layer runs apart from its activation"


class ActivatedLinear(nn.Module):
    """A linear layer with an activation, as one operator; for inference."""

    def __init__(self, layer: Any, activation: nn.Module) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self._name = _NAMES[type(activation)]
        self._algorithm = getattr(activation, "approximate", "")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The activated product."""
        output: torch.Tensor = linear_pointwise()(x, self.weight, self.bias, self._name, [], self._algorithm)
        return output


def _pairs(subject: Subject) -> list[tuple[nn.Module, nn.Module]]:
    pairs = adjacent(subject, (nn.Linear,), tuple(_NAMES))
    return [
        (layer, activation)
        for layer, activation in pairs
        if type(layer) is nn.Linear and type(activation) in _NAMES and layer.weight.dtype == torch.float32
    ]
