"""Inference that reads its scores one by one by their index."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Count(nn.Module):
    """Counts how many scores are above a threshold."""

    def __init__(self, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one
        self.score = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Count the scores above the threshold."""
        scores = self.score(x).squeeze(1)
        if not self.one_by_one:
            return (scores > 0.1).sum()
        count = 0
        for i in range(scores.shape[0]):
            if scores[i].item() > 0.1:
                count += 1
        return torch.tensor(count)


def inference(one_by_one: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Count(one_by_one), (torch.randn(1024, 256),), unit="rows", per_step=1024)


def workload() -> pm.Inference:
    return inference(one_by_one=True)


def fixed() -> pm.Inference:
    return inference(one_by_one=False)
