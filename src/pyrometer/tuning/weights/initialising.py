r"""Whether fresh weights fit the activation after them.

A layer keeps the variance of what passes through it where the deviation of its weights is \\(g / \sqrt{n_{in}}\\) before ReLU and
its kin (He) and \\(g \sqrt{2 / (n_{in} + n_{out})}\\) before tanh and sigmoid (Xavier), with the gain \\(g\\) of the activation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from torch import fx, nn

from pyrometer.tuning.pruning.chains import CONVOLUTIONS, traced

_HE: dict[Any, tuple[str, float]] = {
    kind: ("kaiming_normal_(weight, nonlinearity='relu')", math.sqrt(2))
    for kind in (
        nn.ReLU,
        nn.ReLU6,
        nn.GELU,
        nn.SiLU,
        nn.Hardswish,
        nn.Mish,
        "relu",
        "gelu",
        "silu",
        "leaky_relu",
    )
} | {
    nn.LeakyReLU: ("kaiming_normal_(weight, nonlinearity='leaky_relu')", math.sqrt(2)),
    **dict.fromkeys((nn.SELU, "selu"), ("kaiming_normal_(weight, nonlinearity='linear')", 1.0)),  # LeCun
}
_XAVIER: dict[Any, tuple[str, float]] = {
    **dict.fromkeys((nn.Tanh, "tanh"), ("xavier_normal_(weight, gain=5 / 3)", 5 / 3)),
    **dict.fromkeys((nn.Sigmoid, "sigmoid"), ("xavier_normal_(weight)", 1.0)),
}
FEWEST = 64
"""Weights below which their deviation says little."""

FACTOR = 1.5
"""A deviation that is off by more than this is told."""


class InitialisationAdvice(NamedTuple):
    """A layer whose weights are too small or too large for the activation that follows.

    Attributes:
        layer: its name in the model.
        activation: what follows.
        deviation: of its weights.
        expected: that keeps the variance.
        advice: one sentence.
    """

    layer: str
    activation: str
    deviation: float
    expected: float
    advice: str


def check_initialisation(model: nn.Module) -> list[InitialisationAdvice]:
    """Layers of a fresh model whose weights do not fit the activation after them.

    It is for models that were not trained yet. Layers before a norm are left out, since that sets the scale anew; so is what cannot
    be traced by `torch.fx`, of which the plain `nn.Sequential` inside are read.
    """
    graph = traced(model)
    if graph is not None:
        return _advice(model, graph, "")
    found: list[InitialisationAdvice] = []
    for name, part in model.named_modules():
        inner = traced(part) if type(part) is nn.Sequential else None
        found += _advice(part, inner, f"{name}.") if inner is not None else []
    return list({each.layer: each for each in found}.values())


def _advice(model: nn.Module, graph: fx.Graph, prefix: str) -> list[InitialisationAdvice]:
    modules = dict(model.named_modules(remove_duplicate=False))
    found: dict[str, InitialisationAdvice] = {}
    for node in graph.nodes:
        layer = modules.get(str(node.target)) if node.op == "call_module" else None
        if isinstance(layer, (nn.Linear, *CONVOLUTIONS)) and layer.weight.numel() >= FEWEST:
            for user in node.users:
                told = _compared(prefix + str(node.target), layer, _activation(user, modules))
                if told is not None:
                    found[told.layer] = told
    return list(found.values())


def _activation(node: fx.Node, modules: dict[str, nn.Module]) -> Any:
    if node.op == "call_module":
        return type(modules[str(node.target)])
    return getattr(node.target, "__name__", node.target)


def _compared(name: str, layer: Any, activation: Any) -> InitialisationAdvice | None:
    inputs = layer.weight[0].numel()
    outputs = layer.weight.numel() // layer.weight.shape[1]
    if activation in _XAVIER:
        call, gain = _XAVIER[activation]
        expected = gain * math.sqrt(2 / (inputs + outputs))
    elif activation in _HE:
        call, gain = _HE[activation]
        expected = gain / math.sqrt(inputs)
    else:
        return None
    deviation = float(layer.weight.detach().float().std())
    if 1 / FACTOR <= deviation / expected <= FACTOR:
        return None
    title = activation if isinstance(activation, str) else activation.__name__
    size = "small" if deviation < expected else "large"
    sentence = (
        f"{name}: weights deviate by {deviation:.3g}, which is too {size} before {title}; "
        f"torch.nn.init.{call} gives {expected:.3g}"
    )
    return InitialisationAdvice(name, title, deviation, expected, sentence)
