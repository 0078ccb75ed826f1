"""Training whose optimizer updates sixty tensors operator by operator."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


def training(fused: bool) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(*(layer for _ in range(30) for layer in (nn.Linear(96, 96), nn.Tanh())))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    batches = [(torch.randn(32, 96), torch.randn(32, 96)) for _ in range(4)]
    return pm.Training(model, nn.MSELoss(), optimizer, batches)


def workload() -> pm.Training:
    return training(fused=False)


def fixed() -> pm.Training:
    return training(fused=True)
