"""A cyclical schedule that starts with a fresh optimizer every twelve steps."""

import torch
from torch import nn


class Restarts:
    every = 12

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(30, 60), nn.ReLU(), nn.Linear(60, 3))
        self.optimizer = None
        self.count = 0

    def train_step(self, x, y):
        if self.count % self.every == 0:
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.count += 1
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def make():
    training = Restarts()
    x, y = torch.randn(16, 30), torch.randint(0, 3, (16,))

    def step():
        return training.train_step(x, y)

    return step


EXPECTED = {"verdict": "stable", "note": "the old optimizer's state goes with it"}
