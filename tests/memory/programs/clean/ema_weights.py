"""Exponential moving average of the weights."""

import copy

import torch
from torch import nn


class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for average, parameter in zip(self.shadow.parameters(), model.parameters()):
            average.mul_(self.decay).add_(parameter, alpha=1 - self.decay)


def make():
    model = nn.Sequential(nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ema = EMA(model)
    x = torch.randn(16, 50)

    def step():
        optimizer.zero_grad()
        loss = model(x).abs().mean()
        loss.backward()
        optimizer.step()
        ema.update(model)
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "one shadow copy"}
