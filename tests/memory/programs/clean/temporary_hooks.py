"""Activations of one forward pass, by hooks that are removed again."""

import torch
from torch import nn


def activations_of(model, x):
    activations = {}

    def keep(name):
        def hook(module, args, output):
            activations[name] = output

        return hook

    handles = [module.register_forward_hook(keep(name)) for name, module in model.named_children()]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return activations


def make():
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6))

    def step():
        activations = activations_of(model, torch.randn(10, 24))
        return {name: value.abs().mean().item() for name, value in activations.items()}

    return step


EXPECTED = {"verdict": "stable", "note": "handle.remove()"}
