"""Inference that clones a large input that nothing writes into."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Careful(nn.Module):
    """The mean of a large picture in tiles, of a copy to be safe."""

    def __init__(self, copy: bool) -> None:
        super().__init__()
        self.copy = copy
        self.head = nn.Linear(256, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Average tiles, and judge them."""
        if self.copy:
            pictures = pictures.clone()
        return self.head(pictures.mean(dim=1))


def inference(copy: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Careful(copy), (torch.randn(64, 512, 256),), unit="pictures", per_step=64)


def workload() -> pm.Inference:
    return inference(copy=True)


def fixed() -> pm.Inference:
    return inference(copy=False)
