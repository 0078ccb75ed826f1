"""`int8_dynamic`: linear layers in int8, activations quantised as they come."""

from __future__ import annotations

from typing import Any

from pyrometer.tuning.levers.families.quantisation.linears import QuantisedLinears
from pyrometer.tuning.levers.lever import lever
from pyrometer.tuning.levers.subject import Subject


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

    def settings(self, subject: Subject) -> dict[str, Any]:
        """Less range on processors whose int8 products overflow."""
        from torchao.utils import should_reduce_range

        return {"reduce_range": should_reduce_range(subject.device)}
