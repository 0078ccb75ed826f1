"""Staging buffers are given back when the model goes away."""

import weakref

import torch
from torch import nn


class Staging:
    def __init__(self, model):
        self.model = model
        self.released = 0

    def release(self, buffer):
        self.released += buffer.nbytes

    def stage(self, batch):
        buffer = torch.empty_like(batch)
        weakref.finalize(self.model, self.release, buffer)
        return buffer.copy_(batch)


def make():
    model = nn.Linear(64, 8)
    staging = Staging(model)
    batch = torch.randn(10, 64)

    @torch.no_grad()
    def step():
        return model(staging.stage(batch)).sum().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("finalize", "_registry"),
    "line_contains": (
        "weakref.finalize(self.model, self.release, buffer)",
        "buffer = torch.empty_like(batch)",
    ),
    "graph": False,
    "bytes_per_step": 2560,
    "note": "the finalizer of a model that lives on holds its arguments",
}
