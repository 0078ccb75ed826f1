"""Every eleventh request is a large one."""

import torch
from torch import nn


def make():
    model = nn.Linear(64, 64).eval()
    served = {"requests": 0}

    @torch.no_grad()
    def step():
        served["requests"] += 1
        batch = 512 if served["requests"] % 11 == 0 else 8
        return model(torch.randn(batch, 64)).mean().item()

    return step


EXPECTED = {"verdict": "stable", "note": "spikes that leave nothing"}
