"""Training with int8 in mind: weights learn to be right once they are rounded."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from torch import nn

from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.tuning.copied_training import (
    copied_training,
    judged_batches,
    mean_loss,
    train,
    training_session,
)
from pyrometer.tuning.levers.families.quantisation.linears import is_sizeable, sizeable
from pyrometer.tuning.levers.lever import missing_packages
from pyrometer.tuning.levers.registry import find_lever
from pyrometer.workload.inference import home_of
from pyrometer.workload.losses import batch_loss
from pyrometer.workload.state import preserved_rng
from pyrometer.workload.training import Training

LEVER = "int8_dynamic"


class QuantisedTraining(NamedTuple):
    """A model whose linear layers are in int8, and what the training brought.

    Attributes:
        model: quantised as by the lever `int8_dynamic`, in eval mode.
        float_loss: of the model as it was, over the first batches, in eval mode.
        loss_before: of that model quantised without training.
        loss_after: of `model`.
        steps: of the optimizer.
    """

    model: nn.Module
    float_loss: float
    loss_before: float
    loss_after: float
    steps: int


@preserved_rng()  # torchao makes layers anew, which draws random weights first
def train_quantised(work: Training, steps: int = 100) -> QuantisedTraining:
    """Train a copy with int8 simulated in its linear layers, and quantise it.

    Steps are those of the workload: its loss, its optimizer with its state, its batches from the start.

    Args:
        work: the training; nothing of it is changed.
        steps: of the optimizer.

    Raises:
        InputError: torchao is missing, no linear layer is large enough, or batches come from an iterator.
    """
    require_count("steps", steps)
    missing = missing_packages(find_lever(LEVER))
    if missing is not None:
        raise InputError(f"train_quantised: {missing}")
    batches, own = judged_batches(work), copied_training(work)
    model = own.parts.model
    if not sizeable(model):
        raise InputError("train_quantised: no linear layer is large enough to be worth int8")
    loss = batch_loss(own.parts.loss)
    float_loss, loss_before = (mean_loss(each, batches, loss) for each in (model, _converted(model)))
    own.parts = own.parts._replace(model=_prepared(model))
    with training_session(own, work) as session:
        train(session, work, steps)
        trained = _converted(own.parts.model)
    return QuantisedTraining(trained, float_loss, loss_before, mean_loss(trained, batches, loss), steps)


def _prepared(model: nn.Module) -> nn.Module:
    """Layers that round as int8 does; their parameters stay the very ones that the optimizer holds."""
    import torch
    from torchao.quantization import quantize_
    from torchao.quantization.qat import IntxFakeQuantizeConfig, QATConfig

    # torchao simulates no symmetric ranges per token; the asymmetric ones are a little finer than those that are used afterwards.
    activations = IntxFakeQuantizeConfig(torch.int8, "per_token", is_symmetric=False)
    weights = IntxFakeQuantizeConfig(torch.int8, "per_channel", is_symmetric=True)
    config = QATConfig(activation_config=activations, weight_config=weights, step="prepare")
    quantize_(model, config, filter_fn=lambda module, _: is_sizeable(module))
    return model


def _converted(model: nn.Module) -> nn.Module:
    """A copy in int8."""
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_
    from torchao.quantization.qat import QATConfig
    from torchao.utils import should_reduce_range

    copied = copy.deepcopy(model).eval()
    config: Any = Int8DynamicActivationInt8WeightConfig(
        reduce_range=should_reduce_range(home_of(copied)), set_inductor_config=False
    )
    quantize_(copied, QATConfig(step="convert"), filter_fn=lambda module, _: isinstance(module, nn.Linear))
    quantize_(copied, config, filter_fn=lambda module, _: is_sizeable(module))
    return copied
