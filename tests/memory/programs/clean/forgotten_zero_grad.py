"""Training that never clears its gradients."""

import torch
from torch import nn


def make():
    model = nn.Linear(30, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x, y = torch.randn(20, 30), torch.randint(0, 3, (20,))

    def step():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "stable",
    "note": "a bug of the training, not of its memory: gradients are added in place",
}
