"""Accuracy of every batch, averaged when somebody asks."""

import torch
from torch import nn


class Accuracy:
    def __init__(self):
        self.values = []

    def update(self, logits, target):
        self.values.append((logits.argmax(dim=1) == target).float().mean())

    def compute(self):
        return torch.stack(self.values).mean()


def make():
    model = nn.Linear(30, 3)
    accuracy = Accuracy()
    x, y = torch.randn(64, 30), torch.randint(0, 3, (64,))

    @torch.no_grad()
    def step():
        accuracy.update(model(x), y)
        return len(accuracy.values)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("values", "accuracy"),
    "line_contains": ("self.values.append((logits.argmax(dim=1) == target).float().mean())",),
    "graph": False,
    "bytes_per_step": 4,
    "note": "one scalar per step",
}
