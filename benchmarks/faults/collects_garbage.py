"""Inference that collects garbage after every request."""

from __future__ import annotations

import gc

import torch
from torch import nn

import pyrometer as pm


class Tidy(nn.Module):
    """A small network that is too orderly."""

    def __init__(self, collect: bool) -> None:
        super().__init__()
        self.collect = collect
        self.layers = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(512, 512), nn.ReLU())))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layers."""
        y = self.layers(x)
        if self.collect:
            gc.collect()
        return y


def inference(collect: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Tidy(collect), (torch.randn(512, 512),), unit="rows", per_step=512)


def workload() -> pm.Inference:
    return inference(collect=True)


def fixed() -> pm.Inference:
    return inference(collect=False)
