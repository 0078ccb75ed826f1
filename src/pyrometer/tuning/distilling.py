r"""Distillation: a small model learns from the answers of a large one.

The loss of a batch is \\(a T^2 \mathrm{KL}(p_T \,\|\, q_T) + (1 - a) L\\), with the teacher's and the student's distributions at
temperature \\(T\\), the weight \\(a\\) of the teacher, and the workload's own loss \\(L\\) (Hinton, Vinyals and Dean, 2015).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.tuning.copied_training import (
    copied_training,
    judged_batches,
    mean_loss,
    train,
    training_session,
)
from pyrometer.workload.losses import BatchLoss, batch_loss
from pyrometer.workload.parts import copied_module
from pyrometer.workload.training import Training


class Distilled(NamedTuple):
    """A student that learned from a teacher.

    Attributes:
        model: the student, a copy, in eval mode.
        loss_before: mean divergence from the teacher over the first batches, before the first step.
        loss_after: the same after the last one.
        steps: of the optimizer.
    """

    model: nn.Module
    loss_before: float
    loss_after: float
    steps: int


def distil(
    student: Training, teacher: nn.Module, steps: int = 100, temperature: float = 2.0, alpha: float = 0.5
) -> Distilled:
    """Train a copy of a student on its own loss and on the answers of a teacher.

    The teacher gets what the student gets; both return logits over the last dimension, as a tensor or as `.logits`.

    Args:
        student: its training; nothing of it is changed.
        teacher: left as it is; a copy of it answers, in eval mode.
        steps: of the optimizer.
        temperature: how soft the answers are.
        alpha: weight of the teacher, 0 to 1; the rest is the weight of the workload's loss.

    Raises:
        InputError: an argument is out of range, batches come from an iterator, or logits are missing or of other shapes.
    """
    require_count("steps", steps)
    if not temperature > 0:
        raise InputError(f"temperature: got {temperature}; it must be positive, for example 2")
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha: got {alpha}; legal is 0 to 1, for example 0.5")
    batches, own = judged_batches(student), copied_training(student)
    answers = copied_module("teacher", teacher).eval().requires_grad_(False)
    usual = batch_loss(own.parts.loss)

    def divergence(model: nn.Module, batch: Any) -> torch.Tensor:
        return _losses(model, batch, usual, answers, temperature)[1]

    def combined(model: nn.Module, batch: Any) -> torch.Tensor:
        hard, soft = _losses(model, batch, usual, answers, temperature)
        return alpha * soft + (1 - alpha) * hard

    own.parts = own.parts._replace(loss=combined)
    before = mean_loss(own.parts.model, batches, divergence)
    with training_session(own, student) as session:
        train(session, student, steps)
        trained = copied_module("model", own.parts.model).eval()
    return Distilled(trained, before, mean_loss(trained, batches, divergence), steps)


def _losses(
    model: nn.Module, batch: Any, usual: BatchLoss, teacher: nn.Module, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The workload's loss, and the divergence from the teacher on what the student was called with."""
    calls: list[tuple[Any, Any, Any]] = []
    with model.register_forward_hook(lambda _, *call: calls.append(call), with_kwargs=True):
        hard = usual(model, batch)
    if not calls:
        raise InputError("loss: does not call the model that it is given; write it as loss(model, batch)")
    args, kwargs, output = calls[-1]
    with torch.no_grad():
        target = _logits("teacher", teacher(*args, **kwargs))
    logits = _logits("student", output)
    if logits.shape != target.shape:
        raise InputError(
            f"teacher: its logits are {list(target.shape)} and the student's {list(logits.shape)}; "
            "both must have one shape"
        )
    learned, taught = (
        functional.log_softmax(each.flatten(0, -2).float() / temperature, -1) for each in (logits, target)
    )
    soft = functional.kl_div(learned, taught, reduction="batchmean", log_target=True)
    return hard, soft * temperature**2


def _logits(whose: str, output: Any) -> torch.Tensor:
    tensor = getattr(output, "logits", output)
    if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.dim() > 1:
        return tensor
    raise InputError(
        f"{whose}: returned {type(output).__name__}; it must return logits, as a tensor [batch, …, classes] or as .logits"
    )
