"""`fold_batchnorm`: batch norm folded into the weights of the layer before it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from pyrometer.tuning.levers.lever import Lever, Parameters
from pyrometer.tuning.levers.registry import lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.parts import submodules_of
from pyrometer.workload.state import inference_mode

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
    fix_class = "exact"
    prior = 0.9

    def refuses(self, subject: Subject) -> str | None:
        """A batch norm has to read what a convolution or a linear layer alone wrote."""
        if not subject.has(*_NORMS):
            return "the model has no batch norm"
        return (
            None if _pairs(subject) else "no batch norm reads the output of a convolution or a linear layer"
        )

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Fold, and put `nn.Identity` in the place of the norm."""
        del parameters
        places = {id(module): (parent, name) for parent, name, module in submodules_of(subject.model)}
        for layer, norm in _pairs(subject):
            fold: Any = fuse_linear_bn_eval if isinstance(layer, nn.Linear) else fuse_conv_bn_eval
            for module, replacement in ((layer, fold(layer, norm)), (norm, nn.Identity())):
                parent, name = places[id(module)]
                setattr(parent, name, replacement)

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """No pair is left."""
        del parameters
        left = len(_pairs(subject))
        return f"{left} batch norms could still be folded" if left else None


def _pairs(subject: Subject) -> list[tuple[nn.Module, nn.Module]]:
    """Layers with the norm that alone reads their output, seen in one forward pass.

    Both are called once. Whether somebody else reads the output, too, shows in the numbers, which are compared.
    """
    wrote: dict[int, tuple[nn.Module, torch.Tensor]] = {}
    calls: dict[int, int] = {}
    pairs: list[tuple[nn.Module, nn.Module]] = []

    def see(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        calls[id(module)] = calls.get(id(module), 0) + 1
        if isinstance(module, _NORMS) and inputs and id(inputs[0]) in wrote:
            pairs.append((wrote[id(inputs[0])][0], module))
        elif isinstance(output, torch.Tensor):
            wrote[id(output)] = (module, output)

    with _hooked(subject.model, see), inference_mode(True):
        arguments = subject.example()
        subject.model(*arguments.args, **arguments.kwargs)
    return [pair for pair in pairs if all(calls[id(module)] == 1 for module in pair) and _fits(*pair)]


def _fits(layer: nn.Module, norm: nn.Module) -> bool:
    tracked = getattr(norm, "running_mean", None) is not None
    return tracked and isinstance(layer, (*_CONVOLUTIONS, nn.Linear)) and not _is_parametrized(layer)


def _is_parametrized(layer: nn.Module) -> bool:
    return nn.utils.parametrize.is_parametrized(layer)


@contextlib.contextmanager
def _hooked(model: nn.Module, see: Any) -> Iterator[None]:
    kinds = (*_CONVOLUTIONS, nn.Linear, *_NORMS)
    handles = [module.register_forward_hook(see) for module in model.modules() if isinstance(module, kinds)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
