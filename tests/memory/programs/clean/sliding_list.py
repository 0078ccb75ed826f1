"""The last five observations in a list."""

import torch
from torch import nn


class Smoother:
    def __init__(self, size):
        self.size = size
        self.recent = []

    def __call__(self, observation):
        self.recent.append(observation)
        if len(self.recent) > self.size:
            self.recent.pop(0)
        return torch.stack(self.recent).median(dim=0).values


def make():
    sensor = nn.Linear(10, 100)
    smooth = Smoother(5)

    @torch.no_grad()
    def step():
        return smooth(sensor(torch.randn(10))).sum().item()

    return step


EXPECTED = {"verdict": "stable", "note": "pop(0) keeps five"}
