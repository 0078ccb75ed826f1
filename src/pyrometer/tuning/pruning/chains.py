"""Layers whose channels can be taken out: all that reads their output is known, and can be cut to match."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ELEMENTWISE = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid, nn.Hardswish),
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.Identity),
)
_POOLS = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool2d),
)
_FUNCTIONS: set[Callable[..., Any] | str] = {
    *(
        functional.relu,
        functional.gelu,
        functional.silu,
        functional.leaky_relu,
        functional.dropout,
        functional.tanh,
    ),
    *(torch.relu, torch.tanh, torch.sigmoid, "relu", "tanh", "sigmoid"),
}
_POOLING_FUNCTIONS: set[Callable[..., Any] | str] = {
    *(functional.max_pool2d, functional.avg_pool2d, functional.adaptive_avg_pool2d),
}


class Chain(NamedTuple):
    """A layer and what depends on the number of its channels.

    Attributes:
        layer: whose channels may be taken out.
        norms: batch norms over these channels.
        consumer: the only layer that reads them.
        width: inputs of the consumer per channel: more than one where an image was flattened in between.
    """

    layer: nn.Module
    norms: tuple[nn.Module, ...]
    consumer: nn.Module
    width: int


def traced(model: nn.Module) -> fx.Graph | None:
    """The calls of a model's forward; `None` where its flow depends on values."""
    try:
        return fx.Tracer().trace(model)
    except Exception:  # noqa: BLE001 - the program's own forward raises whatever it likes at a tracer's proxies
        return None


def chains_of(model: nn.Module) -> list[Chain]:
    """All chains, in the order in which they are run; empty where the model cannot be traced."""
    graph = traced(model)
    if graph is None:
        return []
    walk = _Walk(model, graph)
    found = (walk.chain_from(node) for node in graph.nodes)
    return [chain for chain in found if chain is not None]


class _Walk:
    """Follows what reads a layer's output."""

    def __init__(self, model: nn.Module, graph: fx.Graph) -> None:
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.calls = collections.Counter(
            id(self.modules[str(node.target)]) for node in graph.nodes if node.op == "call_module"
        )
        own = [parameter for module in model.modules() for parameter in module._parameters.values()]  # noqa: SLF001 - a tied one is in it twice
        self.holders = collections.Counter(id(parameter) for parameter in own if parameter is not None)
        self.read = {str(node.target) for node in graph.nodes if node.op == "get_attr"}

    def module_of(self, node: fx.Node) -> nn.Module | None:
        """The module that a node calls, where it may be cut: called once, and with weights of its own."""
        if node.op != "call_module":
            return None
        module = self.modules[str(node.target)]
        tied = any(self.holders[id(parameter)] > 1 for parameter in module.parameters())
        is_read = any(name.startswith(f"{node.target}.") for name in self.read)
        is_changed = nn.utils.parametrize.is_parametrized(module) or bool(module._forward_pre_hooks)  # noqa: SLF001 - pruning and spectral norm of torch
        return None if tied or is_read or is_changed or self.calls[id(module)] > 1 else module

    def chain_from(self, node: fx.Node) -> Chain | None:
        """The chain that begins at a node."""
        layer = self.module_of(node)
        if layer is None or not _is_layer(layer):
            return None
        weight: Any = layer.weight
        channels = weight.shape[0]
        norms: list[nn.Module] = []
        is_image, flat = isinstance(layer, CONVOLUTIONS), False
        while len(node.users) == 1:
            node = next(iter(node.users))
            module = self.module_of(node)
            if module is not None and _is_layer(module):
                return _ended(layer, norms, module, flat)
            if isinstance(module, _NORMS) and not flat and module.num_features == channels:
                norms.append(module)
            elif _flattens(node, module) and is_image and not flat:
                flat = True
            elif not self._keeps_channels(node, module, is_image and not flat):
                return None
        return None

    @staticmethod
    def _keeps_channels(node: fx.Node, module: nn.Module | None, is_image: bool) -> bool:
        if module is not None:
            return type(module) in _ELEMENTWISE or (is_image and type(module) in _POOLS)
        if node.op not in {"call_function", "call_method"} or len(node.all_input_nodes) != 1:
            return False
        return node.target in _FUNCTIONS or (is_image and node.target in _POOLING_FUNCTIONS)


def _is_layer(module: nn.Module) -> bool:
    if type(module) is nn.Linear:
        return True
    own: Any = module
    return type(own) in CONVOLUTIONS and bool(own.groups == 1) and bool(own.padding_mode == "zeros")


def _ended(layer: nn.Module, norms: list[nn.Module], consumer: nn.Module, flat: bool) -> Chain | None:
    """The chain where the consumer reads channels in a way that is known."""
    written: Any = layer.weight
    read: Any = consumer.weight
    channels, inputs = written.shape[0], read.shape[1]
    is_image = isinstance(layer, CONVOLUTIONS)
    reads_image = isinstance(consumer, CONVOLUTIONS)
    if is_image != (reads_image or flat) or (flat and reads_image) or inputs % channels:
        return None
    if not flat and inputs != channels:
        return None
    return Chain(layer, tuple(norms), consumer, inputs // channels)


def _flattens(node: fx.Node, module: nn.Module | None) -> bool:
    if isinstance(module, nn.Flatten):
        return (module.start_dim, module.end_dim) == (1, -1)
    if node.target not in {torch.flatten, "flatten"}:
        return False
    start: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("start_dim", 0)
    return bool(start == 1) and len(node.args) < 3 and "end_dim" not in node.kwargs
