"""A confusion matrix that is counted up in place."""

import torch
from torch import nn


class ConfusionMatrix:
    def __init__(self, classes):
        self.counts = torch.zeros(classes, classes, dtype=torch.long)

    def update(self, predicted, target):
        index = target * len(self.counts) + predicted
        self.counts += torch.bincount(index, minlength=self.counts.numel()).view_as(self.counts)

    def accuracy(self):
        return (self.counts.diagonal().sum() / self.counts.sum()).item()


def make():
    model = nn.Linear(30, 5)
    matrix = ConfusionMatrix(5)

    @torch.no_grad()
    def step():
        x, y = torch.randn(32, 30), torch.randint(0, 5, (32,))
        matrix.update(model(x).argmax(dim=1), y)
        return matrix.accuracy()

    return step


EXPECTED = {"verdict": "stable", "note": "in place"}
