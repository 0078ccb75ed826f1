"""Training with a validation each ten steps."""

import torch
from torch import nn


class Experiment:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(40, 80), nn.ReLU(), nn.Dropout(0.1), nn.Linear(80, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.train_batch = torch.randn(32, 40), torch.randint(0, 2, (32,))
        self.val_batch = torch.randn(256, 40), torch.randint(0, 2, (256,))
        self.history = []
        self.iteration = 0

    def train_step(self):
        x, y = self.train_batch
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.iteration += 1
        if self.iteration % 10 == 0:
            self.history.append(self.validate())
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.val_batch
        accuracy = (self.model(x).argmax(dim=1) == y).float().mean().item()
        self.model.train()
        return accuracy


def make():
    return Experiment().train_step


EXPECTED = {"verdict": "stable", "note": "a spike each ten steps, and a list of floats"}
