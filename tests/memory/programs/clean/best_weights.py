"""Early stopping keeps a copy of the best weights."""

import copy

import torch
from torch import nn


class EarlyStopping:
    def __init__(self):
        self.best_loss = float("inf")
        self.best_weights = None

    def update(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_weights = copy.deepcopy(model.state_dict())


def make():
    model = nn.Linear(40, 40)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    stopping = EarlyStopping()
    x = torch.randn(20, 40)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        stopping.update(loss.item(), model)
        return stopping.best_loss

    return step


EXPECTED = {"verdict": "stable", "note": "replaced in nearly each step, but one copy at a time"}
