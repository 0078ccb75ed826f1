"""Blocks are recomputed in the backward pass."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(40, 80), nn.GELU(), nn.Linear(80, 40)) for _ in range(3)
        )

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return x


def make():
    model = Blocks()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(12, 40)

    def step():
        optimizer.zero_grad()
        loss = model(x).abs().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "activation checkpointing"}
