"""The latest activation of each layer, for a dashboard."""

import torch
from torch import nn


class LatestActivations:
    def __init__(self, model):
        self.latest = {}
        for name, module in model.named_children():
            module.register_forward_hook(self.hook_for(name))

    def hook_for(self, name):
        def hook(module, args, output):
            self.latest[name] = output

        return hook


def make():
    model = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 6))
    monitor = LatestActivations(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        loss = model(torch.randn(12, 24)).square().mean()
        loss.backward()
        optimizer.step()
        return max(value.abs().max().item() for value in monitor.latest.values())

    return step


EXPECTED = {"verdict": "stable", "note": "one entry per layer, overwritten"}
