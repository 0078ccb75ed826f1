"""Look at the hidden activations of a model while it trains."""

import torch
from torch import nn


class ActivationRecorder:
    def __init__(self, module):
        self.activations = []
        self.handle = module.register_forward_hook(self.record)

    def record(self, module, args, output):
        self.activations.append(output)

    def mean_magnitude(self):
        return self.activations[-1].abs().mean().item()


def make():
    model = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48))
    recorder = ActivationRecorder(model[1])
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(40, 48)

    def step():
        optimizer.zero_grad()
        loss = (model(batch) - batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        return recorder.mean_magnitude()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("activations",),
    "line_contains": ("self.activations.append(output)", "loss = (model(batch) - batch).pow(2).mean()"),
    "graph": True,
    "bytes_per_step": 15360,
    "note": "40 x 96 floats of the hooked layer's output",
}
