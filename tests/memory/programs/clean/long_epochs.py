"""Like any evaluation loop: all logits of an epoch of 25 batches, then the metric, then the next epoch."""

import torch
from torch import nn


class Evaluation:
    batches_per_epoch = 25

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
        self.logits, self.labels = [], []
        self.best = 0.0

    @torch.no_grad()
    def batch(self):
        x = torch.randn(16, 32)
        self.logits.append(self.model(x))
        self.labels.append(torch.randint(0, 4, (16,)))
        if len(self.logits) >= self.batches_per_epoch:
            self.finish()

    def finish(self):
        predicted = torch.cat(self.logits).argmax(dim=1)
        self.best = max(self.best, (predicted == torch.cat(self.labels)).float().mean().item())
        self.logits, self.labels = [], []


def make():
    return Evaluation().batch


EXPECTED = {"verdict": "stable", "note": "a long period: the lists are replaced each 25 steps"}
