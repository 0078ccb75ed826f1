"""Train with a running total of the loss for the progress bar."""

import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.criterion = nn.SmoothL1Loss()
        self.total_loss = 0
        self.num_batches = 0

    def train_batch(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.total_loss += loss
        self.num_batches += 1
        return self.total_loss / self.num_batches


def make():
    trainer = Trainer()
    x, y = torch.randn(16, 32), torch.randn(16, 1)

    def step():
        return trainer.train_batch(x, y)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("total_loss",),
    "line_contains": ("self.total_loss += loss", "loss = self.criterion(self.model(x), y)"),
    "graph": True,
    "bytes_per_step": 0,
    "note": "no tensor survives, but the sum's graph grows by the nodes of each step",
}
