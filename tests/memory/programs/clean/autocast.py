"""Training in bfloat16 autocast."""

import torch
from torch import nn


def make():
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(16, 64)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            first = model(x)
            second = model(first)
            loss = (second.float() - x).abs().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "stable",
    "note": "autocast's cache of cast weights is dropped at the end of its region",
}
