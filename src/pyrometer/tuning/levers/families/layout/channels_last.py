"""`channels_last`: convolutions on tensors whose channels lie side by side."""

from __future__ import annotations

import torch
from torch import nn

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject

_CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)


@lever
class ChannelsLast(Lever):
    """Lay out the weights of convolutions and their inputs in NHWC."""

    name = "channels_last"
    title = "lay out convolutions in NHWC"
    why = (
        "oneDNN and cuDNN compute convolutions in NHWC; in NCHW they reorder before and after each. "
        "Nothing is won where a compiler chooses the layout by itself."
    )
    stage = "memory"
    place = "layout"
    kinds = frozenset({"inference", "training"})
    prior = 0.8
    executors = frozenset({"eager", "compile", "compile_regional", "aot_inductor", "cuda_graphs"})
    pasted = (
        "model = model.to(memory_format=torch.channels_last)",
        "# and the inputs: x = x.to(memory_format=torch.channels_last)",
    )

    def refuses(self, subject: Subject) -> str | None:
        """Without 2-d convolutions there is nothing to lay out."""
        return None if subject.has(*_CONVOLUTIONS) else "the model has no 2-d convolution"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Lay out the weights, and each input of four dimensions as it comes."""
        if subject.is_training:
            subject.work = subject.work.variant(memory_format="channels_last")
            return
        subject.model = subject.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        subject.inputs_changed.append(_in_channels_last)

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The weights of convolutions with more than one channel are in NHWC."""
        if subject.is_training:
            return None if subject.work.config.memory_format else "the workload keeps its layout"
        weights = [module.weight for module in subject.model.modules() if isinstance(module, _CONVOLUTIONS)]
        told_apart = [weight for weight in weights if weight.shape[1] > 1 and weight.shape[2:] != (1, 1)]
        if weights and not all(
            weight.is_contiguous(memory_format=torch.channels_last) for weight in told_apart
        ):
            return "weights of convolutions are still in NCHW"
        return None


def _in_channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor
