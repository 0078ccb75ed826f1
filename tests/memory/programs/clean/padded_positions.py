"""Position encodings, made longer when a longer sequence comes; no sequence exceeds 40."""

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("table", torch.zeros(0, width))

    def forward(self, x):
        if x.shape[1] > len(self.table):
            place = torch.arange(x.shape[1])[:, None] / 100 ** torch.linspace(0, 1, self.table.shape[1])
            self.table = place.sin()
        return x + self.table[: x.shape[1]]


def make():
    positions = Positions(16)
    counter = {"step": 0}

    def step():
        counter["step"] += 1
        length = min(40, 1 + counter["step"] * 7 % 50)
        return positions(torch.randn(2, length, 16)).mean().item()

    return step


EXPECTED = {"verdict": "stable", "note": "the longest length comes in step six"}
