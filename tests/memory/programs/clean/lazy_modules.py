"""Layers that learn their sizes at the first call, with a mask that is built on demand."""

import torch
from torch import nn


class LazyBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.LazyLinear(64)
        self.out = nn.LazyLinear(8)
        self.mask = None

    def forward(self, x):
        hidden = torch.relu(self.project(x))
        if self.mask is None:
            self.mask = (
                torch.ones(hidden.shape[1]).tril(0) if hidden.dim() == 1 else torch.ones_like(hidden[0])
            )
        return self.out(hidden * self.mask)


def make():
    model = LazyBlock()
    x = torch.randn(16, 40)

    def step():
        loss = model(x).square().mean()
        loss.backward()
        model.zero_grad()
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "all is built in the first step"}
