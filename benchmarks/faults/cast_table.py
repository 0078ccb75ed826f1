"""Inference that casts the same table to another dtype in every call."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Scores(nn.Module):
    """Scores of a few queries against a table that is kept in half precision."""

    def __init__(self, cast_each_time: bool) -> None:
        super().__init__()
        table = torch.randn(20_000, 128).to(torch.bfloat16)
        self.register_buffer("table", table if cast_each_time else table.float())

    def forward(self, queries: torch.Tensor) -> torch.Tensor:
        """Score all rows of the table."""
        if self.table.dtype is not queries.dtype:
            return queries @ self.table.float().T
        return queries @ self.table.T


def inference(cast_each_time: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Scores(cast_each_time), (torch.randn(4, 128),), unit="queries", per_step=4)


def workload() -> pm.Inference:
    return inference(cast_each_time=True)


def fixed() -> pm.Inference:
    return inference(cast_each_time=False)
