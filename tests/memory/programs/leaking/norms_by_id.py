"""Batches seen before need not be normalised again."""

import torch
from torch import nn


class Normaliser:
    def __init__(self):
        self.done = {}

    def __call__(self, batch):
        if id(batch) not in self.done:
            self.done[id(batch)] = (batch, nn.functional.normalize(batch, dim=1))
        return self.done[id(batch)][1]


def make():
    normalise = Normaliser()

    def step():
        batch = torch.randn(16, 32)
        return normalise(batch).mean().item()

    return step


EXPECTED = {
    "verdict": "growing cache",
    "holder": ("done",),
    "line_contains": ("self.done[id(batch)] =", "batch = torch.randn(16, 32)"),
    "graph": False,
    "bytes_per_step": 4096,
    "note": "keyed by identity and holding the key alive: each batch is new, 2 x 2048 bytes",
}
