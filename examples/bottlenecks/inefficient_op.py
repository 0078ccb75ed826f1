"""Inference with one wasteful operator: a full sort to find the best ten scores."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class BestTen(nn.Module):
    """Scores every item and keeps the best ten."""

    def __init__(self, full_sort: bool) -> None:
        super().__init__()
        self.full_sort = full_sort
        self.score = nn.Linear(8, 1)

    def forward(self, items_BND: torch.Tensor) -> torch.Tensor:
        scores_BN = self.score(items_BND).squeeze(-1)
        if self.full_sort:
            return torch.sort(scores_BN, dim=1, descending=True).values[:, :10]
        return torch.topk(scores_BN, 10, dim=1).values


def inference(full_sort: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(BestTen(full_sort), (torch.randn(4, 50_000, 8),), unit="queries", per_step=4)


def workload() -> pm.Inference:
    return inference(full_sort=True)


def fixed() -> pm.Inference:
    return inference(full_sort=False)
