"""What every server of `benchmarks/serving.py` serves."""

from __future__ import annotations

import torch
from torch import nn

WIDTH, HIDDEN, CLASSES = 16, 64, 4
BATCH, WAIT_S = 32, 0.002


def make_model() -> nn.Module:
    """A small model, alike in every process."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)).eval()


def workload() -> tuple[nn.Module, torch.Tensor]:
    """The same with an example, for `pyrometer serve`."""
    return make_model(), torch.randn(1, WIDTH)
