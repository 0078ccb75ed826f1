"""`int8_weight_only`: weights of linear layers in int8, products in the dtype of the activations."""

from __future__ import annotations

from pyrometer.tuning.levers.families.quantisation.linears import QuantisedLinears
from pyrometer.tuning.levers.lever import lever


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
