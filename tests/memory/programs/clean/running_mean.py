"""Features are centred by their running mean."""

import torch
from torch import nn


class Centering(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, features):
        if self.training:
            self.mean.lerp_(features.detach().mean(dim=0), 0.1)
        return features - self.mean


def make():
    encoder = nn.Sequential(nn.Linear(32, 64), nn.Tanh())
    centering = Centering(64)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
    x = torch.randn(32, 32)

    def step():
        optimizer.zero_grad()
        loss = -centering(encoder(x)).std(dim=0).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "detached and in place"}
