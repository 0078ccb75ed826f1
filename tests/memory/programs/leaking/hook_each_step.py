"""Measure how far each forward pass is from the previous one."""

import torch
from torch import nn


class DriftMonitor:
    def __init__(self, model):
        self.model = model
        self.drift = 0.0

    def watch(self, reference):
        def compare(module, args, output):
            self.drift = (output - reference).abs().max().item()

        self.model.register_forward_hook(compare)


def make():
    model = nn.Linear(64, 64).eval()
    monitor = DriftMonitor(model)
    samples = torch.randn(8, 64)

    @torch.no_grad()
    def step():
        reference = model(samples)
        monitor.watch(reference)
        model(samples)
        return monitor.drift

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("_forward_hooks", "compare"),
    "line_contains": ("self.model.register_forward_hook(compare)", "reference = model(samples)"),
    "graph": False,
    "bytes_per_step": 2048,
    "note": "every call adds a hook, whose closure holds 8 x 64 floats",
}
