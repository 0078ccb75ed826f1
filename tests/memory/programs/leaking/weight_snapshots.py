"""Stochastic weight averaging: the weights of every tenth step are averaged at the end."""

import copy

import torch
from torch import nn


class WeightAverager:
    def __init__(self, model, every=10):
        self.model = model
        self.every = every
        self.snapshots = []
        self.steps = 0

    def update(self):
        self.steps += 1
        if self.steps % self.every == 0:
            self.snapshots.append(copy.deepcopy(self.model.state_dict()))

    def average(self):
        names = self.snapshots[0]
        return {name: torch.stack([s[name] for s in self.snapshots]).mean(dim=0) for name in names}


def make():
    model = nn.Linear(64, 31)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    averager = WeightAverager(model)
    x = torch.randn(16, 64)

    def step():
        optimizer.zero_grad()
        loss = model(x).abs().mean()
        loss.backward()
        optimizer.step()
        averager.update()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("snapshots",),
    "line_contains": ("self.snapshots.append(copy.deepcopy(self.model.state_dict()))",),
    "graph": False,
    "bytes_per_step": 806,
    "note": "8060 bytes of weights in ten steps",
}
