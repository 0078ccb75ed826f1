"""Plain training with AdamW."""

import torch
from torch import nn


def make():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = torch.randn(32, 64), torch.randint(0, 10, (32,))
    losses = []

    def step():
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        return losses[-1]

    return step


EXPECTED = {"verdict": "stable", "note": "optimizer state comes with the first step; the list holds floats"}
