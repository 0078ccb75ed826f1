"""Inference that finds the nearest of some points for each query in a loop."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Nearest(nn.Module):
    """Distances from each query to its nearest point."""

    def __init__(self, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one
        self.lift = nn.Linear(32, 32)

    def forward(self, queries: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """Lift the queries, and measure."""
        lifted = self.lift(queries)
        if not self.one_by_one:
            return torch.cdist(lifted, points).amin(dim=1)
        amins = []
        for query in lifted:
            difference = points - query
            amins.append(difference.norm(dim=1).amin())
        return torch.stack(amins)


def inference(one_by_one: bool) -> pm.Inference:
    torch.manual_seed(0)
    inputs = (torch.randn(300, 32), torch.randn(64, 32))
    return pm.Inference(Nearest(one_by_one), inputs, unit="queries", per_step=300)


def workload() -> pm.Inference:
    return inference(one_by_one=True)


def fixed() -> pm.Inference:
    return inference(one_by_one=False)
