"""Training with momentum that is updated operator by operator, on larger tensors."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


def training(fused: bool) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(384, 384), nn.ReLU())))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=fused)
    batches = [(torch.randn(16, 384), torch.randn(16, 384)) for _ in range(4)]
    return pm.Training(model, nn.MSELoss(), optimizer, batches)


def workload() -> pm.Training:
    return training(fused=False)


def fixed() -> pm.Training:
    return training(fused=True)
