"""A loop over rows, and dropout in inference: what an audit fails."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for i in range(x.shape[0]):
            rows.append((x[i] - x[i].mean()) / (x[i].std() + 1e-6))  # noqa: PERF401
        return nn.functional.dropout(torch.stack(rows), 0.5)


def workload():
    model = nn.Sequential(Rows(), nn.Linear(16, 16))
    return pm.Inference(model, (torch.randn(100, 16),), unit="rows", per_step=100)
