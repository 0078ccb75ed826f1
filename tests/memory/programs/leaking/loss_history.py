"""Train a small classifier and remember the loss for the plot at the end."""

import torch
from torch import nn


def make():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    inputs = torch.randn(32, 64)
    targets = torch.randint(0, 10, (32,))
    losses = []

    def step():
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        if len(losses) % 50 == 0:
            print(f"iteration {len(losses)}: loss {loss.item():.4f}")
        return loss

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("losses",),
    "line_contains": ("losses.append(loss)", "loss = criterion(model(inputs), targets)"),
    "graph": True,
    "bytes_per_step": 4,
    "note": "the graph's buffers are freed by backward; its nodes and the scalar stay",
}
