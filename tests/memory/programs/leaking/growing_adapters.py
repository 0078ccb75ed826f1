"""Continual learning: one adapter for each task that comes along."""

import torch
from torch import nn


class AdapterBank(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.base = nn.Linear(width, width)
        self.adapters = nn.ModuleList()

    def start_task(self):
        self.adapters.append(nn.Linear(self.width, self.width, bias=False))

    def forward(self, x):
        return self.base(x) + self.adapters[-1](x)


def make():
    bank = AdapterBank(32).eval()
    x = torch.randn(4, 32)

    @torch.no_grad()
    def step():
        bank.start_task()
        return bank(x).mean().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("adapters",),
    "line_contains": ("self.adapters.append(nn.Linear",),
    "graph": False,
    "bytes_per_step": 4096,
    "note": "32 x 32 floats per task, and each step is a task",
}
