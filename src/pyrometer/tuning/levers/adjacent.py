"""Modules that follow each other, and others in their places."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.parts import submodules_of
from pyrometer.workload.state import inference_mode

Kinds = tuple[type[nn.Module], ...]


def adjacent(subject: Subject, layers: Kinds, followers: Kinds) -> list[tuple[nn.Module, nn.Module]]:
    """Layers with the follower that reads their output, seen in one forward pass; parametrized layers are left out.

    Both are called once. Whether somebody else reads the output, too, shows in the numbers, which are compared.
    """
    wrote: dict[int, tuple[nn.Module, torch.Tensor]] = {}
    calls: dict[int, int] = {}
    pairs: list[tuple[nn.Module, nn.Module]] = []

    def see(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        calls[id(module)] = calls.get(id(module), 0) + 1
        if isinstance(module, followers) and inputs and id(inputs[0]) in wrote:
            pairs.append((wrote[id(inputs[0])][0], module))
        elif isinstance(output, torch.Tensor):
            wrote[id(output)] = (module, output)

    with contextlib.ExitStack() as stack:
        for module in subject.model.modules():
            if isinstance(module, (*layers, *followers)):
                stack.enter_context(module.register_forward_hook(see))
        stack.enter_context(inference_mode(True))
        arguments = subject.example()
        subject.model(*arguments.args, **arguments.kwargs)
    return [
        (layer, follower)
        for layer, follower in pairs
        if calls[id(layer)] == calls[id(follower)] == 1
        and isinstance(layer, layers)
        and not nn.utils.parametrize.is_parametrized(layer)
    ]


def replace_modules(subject: Subject, replacements: Mapping[nn.Module, nn.Module]) -> None:
    """Put modules in the places of others, in every place that holds them; also of the model itself."""
    for parent, name, module in submodules_of(subject.model):
        if module in replacements:
            setattr(parent, name, replacements[module])
    subject.model = replacements.get(subject.model, subject.model)
