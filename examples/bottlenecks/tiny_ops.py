"""Inference made of thousands of tiny operators: a loop over rows."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm

ROWS = 400


class Standardise(nn.Module):
    """Scales each row to mean 0 and deviation 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for i in range(x.shape[0]):
            row = x[i]
            rows.append((row - row.mean()) / (row.std() + 1e-6))
        return torch.stack(rows)


class StandardiseAll(nn.Module):
    """The same, on all rows at once."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(dim=1, keepdim=True)) / (x.std(dim=1, keepdim=True) + 1e-6)


def inference(front: nn.Module) -> pm.Inference:
    torch.manual_seed(0)
    model = nn.Sequential(front, nn.Linear(16, 16), nn.ReLU())
    return pm.Inference(model, (torch.randn(ROWS, 16),), unit="rows", per_step=ROWS)


def workload() -> pm.Inference:
    return inference(Standardise())


def fixed() -> pm.Inference:
    return inference(StandardiseAll())
