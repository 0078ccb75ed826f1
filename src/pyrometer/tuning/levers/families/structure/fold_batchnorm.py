"""`fold_batchnorm`: batch norm folded into the weights of the layer before it."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from pyrometer.tuning.levers.adjacent import adjacent, replace_modules
from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@lever
class FoldBatchnorm(Lever):
    """Fold each batch norm into the convolution or linear layer whose output it reads."""

    name = "fold_batchnorm"
    title = "fold batch norm into the layer before it"
    why = (
        "In eval mode batch norm is a scale and a shift per channel, which the weights before it can hold: "
        "one pass over the activations less for each."
    )
    stage = "basic"
    place = "structure"
    prior = 0.9
    executors = frozenset({"eager", "compile", "compile_regional", "aot_inductor", "cuda_graphs"})

    def refuses(self, subject: Subject) -> str | None:
        """A batch norm has to read what a convolution or a linear layer alone wrote."""
        if not subject.has(*_NORMS):
            return "the model has no batch norm"
        return (
            None if _pairs(subject) else "no batch norm reads the output of a convolution or a linear layer"
        )

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Fold, and put `nn.Identity` in the place of the norm."""
        replacements: dict[nn.Module, nn.Module] = {}
        for layer, norm in _pairs(subject):
            fold: Any = fuse_linear_bn_eval if isinstance(layer, nn.Linear) else fuse_conv_bn_eval
            replacements |= {layer: fold(layer, norm), norm: nn.Identity()}
        replace_modules(subject, replacements)

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """No pair is left."""
        left = len(_pairs(subject))
        return f"{left} batch norms could still be folded" if left else None


def _pairs(subject: Subject) -> list[tuple[nn.Module, nn.Module]]:
    pairs = adjacent(subject, (*_CONVOLUTIONS, nn.Linear), _NORMS)
    return [(layer, norm) for layer, norm in pairs if getattr(norm, "running_mean", None) is not None]
