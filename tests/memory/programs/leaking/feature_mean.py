"""A running mean of the features centres them before the loss."""

import torch
from torch import nn


class Centering(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mean = torch.zeros(width)

    def forward(self, features):
        self.mean = 0.9 * self.mean + 0.1 * features.mean(dim=0)
        return features - self.mean.detach()


def make():
    encoder = nn.Sequential(nn.Linear(32, 64), nn.Tanh())
    centering = Centering(64)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
    x = torch.randn(32, 32)

    def step():
        optimizer.zero_grad()
        loss = -centering(encoder(x)).std(dim=0).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("mean", "centering"),
    "line_contains": (
        "self.mean = 0.9 * self.mean + 0.1 * features.mean(dim=0)",
        "loss = -centering(encoder(x))",
    ),
    "graph": True,
    "bytes_per_step": None,
    "note": "detached where it is used but not where it is kept; retain_graph keeps the activations",
}
