"""Training that keeps an average of its weights, two operators per tensor."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm

DECAY = 0.99


class Averaged(nn.Module):
    """A deep and narrow network with a moving average of each of its parameters."""

    def __init__(self, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one
        self.bulk = nn.Linear(512, 64)
        self.gains = nn.ParameterList(torch.ones(64) for _ in range(1000))
        self.averages = [torch.ones(64) for _ in range(1000)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Update the averages, and use one of them."""
        with torch.no_grad():
            if self.one_by_one:
                for average, gain in zip(self.averages, self.gains, strict=True):
                    average.mul_(DECAY)
                    average.add_(gain, alpha=1 - DECAY)
            else:
                torch._foreach_lerp_(self.averages, list(self.gains), 1 - DECAY)
        return self.bulk(x) * self.averages[0]


def inference(one_by_one: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Averaged(one_by_one), (torch.randn(512, 512),), unit="rows", per_step=512)


def workload() -> pm.Inference:
    return inference(one_by_one=True)


def fixed() -> pm.Inference:
    return inference(one_by_one=False)
