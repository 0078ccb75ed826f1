"""Four micro-batches make one optimizer step."""

import torch
from torch import nn


def make():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    state = {"micro": 0}
    accumulate = 4

    def step():
        x, y = torch.randn(8, 32), torch.randn(8, 1)
        loss = nn.functional.mse_loss(model(x), y) / accumulate
        loss.backward()
        state["micro"] += 1
        if state["micro"] % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "gradients come and go with a period of four"}
