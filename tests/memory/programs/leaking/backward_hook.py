"""Gradient flow through the layers, for a plot of vanishing gradients."""

from collections import defaultdict

import torch
from torch import nn


def make():
    layers = [nn.Linear(32, 32) for _ in range(4)]
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.Sigmoid())])
    gradient_flow = defaultdict(list)

    def remember(name):
        def hook(module, grad_input, grad_output):
            gradient_flow[name].append(grad_output[0])

        return hook

    for index, layer in enumerate(layers[1:], start=1):
        layer.register_full_backward_hook(remember(f"layer{index}"))

    inputs = torch.randn(20, 32)

    def step():
        model.zero_grad()
        model(inputs).mean().backward()
        return [flow[-1].norm().item() for flow in gradient_flow.values()]

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("gradient_flow",),
    "line_contains": ("gradient_flow[name].append(grad_output[0])", "model(inputs).mean().backward()"),
    "graph": False,
    "bytes_per_step": 7680,
    "note": "three layers, each 20 x 32 floats",
}
