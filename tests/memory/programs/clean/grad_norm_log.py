"""A log of losses and gradient norms as plain numbers."""

import torch
from torch import nn


class MetricTable:
    def __init__(self):
        self.rows = []

    def add_row(self, **values):
        self.rows.append({name: value.item() for name, value in values.items()})


def make():
    model = nn.Linear(50, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    table = MetricTable()
    x, y = torch.randn(64, 50), torch.randint(0, 5, (64,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        table.add_row(loss=loss, grad_norm=grad_norm)
        return table.rows[-1]["loss"]

    return step


EXPECTED = {"verdict": "stable", "note": "Python floats grow, tensors do not"}
