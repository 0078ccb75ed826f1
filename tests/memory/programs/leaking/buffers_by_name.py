"""Activation ranges for quantisation, calibrated step by step."""

import torch
from torch import nn


class RangeObserver(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        ranges = torch.stack([x.amin(dim=0), x.amax(dim=0)])
        self.register_buffer(f"ranges_{self.calls}", ranges)
        self.calls += 1
        return x


def make():
    observer = RangeObserver()
    model = nn.Sequential(nn.Linear(32, 64), observer, nn.ReLU())

    @torch.no_grad()
    def step():
        return model(torch.randn(16, 32)).mean().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("_buffers", "ranges_", "observer"),
    "line_contains": ('self.register_buffer(f"ranges_{self.calls}", ranges)', "ranges = torch.stack"),
    "graph": False,
    "bytes_per_step": 512,
    "note": "each call registers a buffer under a new name",
}
