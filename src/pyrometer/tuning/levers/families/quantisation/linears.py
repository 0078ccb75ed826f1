"""`int8_dynamic` and `int8_weight_only`: int8 weights in linear layers, by torchao's `quantize_`."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import nn

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject

SMALLEST_SIDE = 64
"""Features in and out below which a layer is left alone: its quantisation takes longer than its product."""


class QuantisedLinears(Lever):
    """Puts int8 weights into the linear layers that are large enough.

    torchao sets switches of Inductor for the whole process unless told not to; here it is.
    """

    stage = "compute"
    place = "quantisation"
    fix_class = "semantic"
    excludes = frozenset({"quantisation"})
    needs = frozenset({"compile"})
    executors = frozenset({"compile"})
    extra = "quant"
    modules = ("torchao",)
    config_name: ClassVar[str]
    pasted_settings: ClassVar[str] = ""

    def settings(self, subject: Subject) -> dict[str, Any]:
        """What torchao's class of settings is asked for, beside leaving the process as it is."""
        return {}

    def refuses(self, subject: Subject) -> str | None:
        """There must be a linear layer that is worth it."""
        if not sizeable(subject.model):
            return f"no linear layer in floating point has at least {SMALLEST_SIDE} features in and out"
        return None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Replace the weights."""
        from torchao import quantization

        kind = getattr(quantization, self.config_name)
        config = kind(set_inductor_config=False, **self.settings(subject))
        quantization.quantize_(subject.model, config, filter_fn=lambda module, _: is_sizeable(module))

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """No sizeable layer is left in floating point, and some hold int8."""
        left = len(sizeable(subject.model))
        if left:
            return f"{left} linear layers still hold weights in floating point"
        return None if int8_layers(subject.model) else "no layer holds weights in int8"

    def lines(self, parameters: Parameters) -> list[str]:
        """The call, for the same layers."""
        return [
            f"from torchao.quantization import {self.config_name}, quantize_",
            *self.pasted,
            f"config = {self.config_name}({self.pasted_settings}set_inductor_config=False)",
            f"large = lambda layer, _: type(layer) is torch.nn.Linear and min(layer.weight.shape) >= {SMALLEST_SIDE}",
            "quantize_(model, config, filter_fn=large)",
        ]


@lever
class Int8Dynamic(QuantisedLinears):
    """Quantise weights of linear layers to int8, and their inputs in each call."""

    name = "int8_dynamic"
    title = "run linear layers in int8, with activations quantised per token"
    why = (
        "int8 products run at twice to four times the rate of float32 where the processor has instructions for them, and weights "
        "are a quarter of the bytes. Quantising the inputs costs a pass over them: small layers and eager mode become slower."
    )
    prior = 0.7
    config_name = "Int8DynamicActivationInt8WeightConfig"
    pasted = ("from torchao.utils import should_reduce_range",)
    pasted_settings = "reduce_range=should_reduce_range(next(model.parameters()).device), "

    def settings(self, subject: Subject) -> dict[str, Any]:
        """Less range on processors whose int8 products overflow."""
        from torchao.utils import should_reduce_range

        return {"reduce_range": should_reduce_range(subject.device)}


@lever
class Int8WeightOnly(QuantisedLinears):
    """Quantise weights of linear layers to int8."""

    name = "int8_weight_only"
    title = "hold weights of linear layers in int8"
    why = (
        "A quarter of the bytes of weights, which pays where reading them is the limit: one sample at a time, large layers, a "
        "compiler that widens them inside the product. In eager mode each call widens all weights first, and is slower."
    )
    prior = 0.95
    config_name = "Int8WeightOnlyConfig"


def is_sizeable(module: nn.Module) -> bool:
    """Whether a module is a plain linear layer, large enough, in floating point."""
    if not isinstance(module, nn.Linear) or isinstance(
        module, nn.modules.linear.NonDynamicallyQuantizableLinear
    ):
        return False
    weight = module.weight
    plain = type(weight) is nn.Parameter and type(weight.data) is torch.Tensor and weight.is_floating_point()
    return plain and min(weight.shape) >= SMALLEST_SIDE


def sizeable(model: nn.Module) -> list[nn.Module]:
    """The layers that would be quantised."""
    return [module for module in model.modules() if is_sizeable(module)]


def int8_layers(model: nn.Module) -> list[nn.Module]:
    """The linear layers whose weights are held in int8."""
    return [
        module
        for module in model.modules()
        if isinstance(module, nn.Linear)
        and getattr(getattr(module.weight, "qdata", None), "dtype", None) == torch.int8
    ]
