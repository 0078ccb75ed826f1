"""Inference that multiplies the matrices of a batch one by one."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Rotate(nn.Module):
    """Applies to each cloud of points its own matrix."""

    def __init__(self, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one
        self.features = nn.Linear(16, 64)

    def forward(self, clouds: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Turn each cloud, and describe it."""
        if self.one_by_one:
            turned = []
            for i in range(clouds.shape[0]):
                turned.append(torch.relu(clouds[i] @ turns[i]))  # noqa: PERF401 - a loop as people write it
            return self.features(torch.stack(turned)).amax(dim=1)
        return self.features(torch.relu(clouds @ turns)).amax(dim=1)


def inference(one_by_one: bool) -> pm.Inference:
    torch.manual_seed(0)
    inputs = (torch.randn(256, 64, 16), torch.randn(256, 16, 16))
    return pm.Inference(Rotate(one_by_one), inputs, unit="clouds", per_step=256)


def workload() -> pm.Inference:
    return inference(one_by_one=True)


def fixed() -> pm.Inference:
    return inference(one_by_one=False)
