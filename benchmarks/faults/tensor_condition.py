"""Inference that decides by a tensor's value for each part of its input."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Clip(nn.Module):
    """Scales down the rows of a batch that are too long."""

    def __init__(self, decide: bool) -> None:
        super().__init__()
        self.decide = decide
        self.body = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale down what is longer than 1."""
        y = self.body(x)
        norms = y.norm(dim=1)
        if not self.decide:
            return y / norms.clamp(min=1.0).unsqueeze(1)
        scale = [1.0] * len(norms)
        for i, norm in enumerate(norms):
            if norm > 1.0:
                scale[i] = 1.0 / float(norm)
        return y * torch.tensor(scale).unsqueeze(1)


def inference(decide: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Clip(decide), (torch.randn(512, 128),), unit="rows", per_step=512)


def workload() -> pm.Inference:
    return inference(decide=True)


def fixed() -> pm.Inference:
    return inference(decide=False)
