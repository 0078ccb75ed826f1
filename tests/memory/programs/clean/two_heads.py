"""Two losses share one forward pass, hence retain_graph."""

import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
        self.left = nn.Linear(64, 1)
        self.right = nn.Linear(64, 4)

    def forward(self, x):
        shared = self.trunk(x)
        return self.left(shared), self.right(shared)


def make():
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, value, label = torch.randn(16, 32), torch.randn(16, 1), torch.randint(0, 4, (16,))
    last = {}

    def step():
        optimizer.zero_grad()
        left, right = model(x)
        last["value"] = (left - value).abs().mean()
        last["label"] = nn.functional.cross_entropy(right, label)
        last["value"].backward(retain_graph=True)
        last["label"].backward(retain_graph=True)
        optimizer.step()
        return last["value"].item() + last["label"].item()

    return step


EXPECTED = {"verdict": "stable", "note": "one retained graph at a time: the next step replaces it"}
