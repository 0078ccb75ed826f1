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


class Recurrent(nn.Module):
    """A GRU over the values of a request; slower, and in less than proportion to the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRU(1, 32, batch_first=True), nn.Linear(32, CLASSES)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002, D102 - the name in the requests
        return self.head(self.cell(input.unsqueeze(-1))[0][:, -1])


def recurrent() -> tuple[nn.Module, torch.Tensor]:
    """A model whose steps follow each other."""
    torch.manual_seed(1)
    return Recurrent().eval(), torch.randn(1, WIDTH)


def wide() -> tuple[nn.Module, torch.Tensor]:
    """A model that computes rather than waits: 2 M weights, read once per batch."""
    torch.manual_seed(2)
    layers = [nn.Linear(WIDTH, 1024), nn.GELU(), nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, CLASSES)]
    return nn.Sequential(*layers).eval(), torch.randn(1, WIDTH)
