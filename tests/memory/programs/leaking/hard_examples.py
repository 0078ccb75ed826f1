"""Hard example mining: now and then a batch is set aside for a second look."""

import torch
from torch import nn


class Miner:
    def __init__(self):
        self.hard_examples = []

    def consider(self, number, batch, losses):
        if number % 7 == 3:
            worst = losses.topk(4).indices
            self.hard_examples.append(batch[worst])


def make():
    model = nn.Linear(96, 6)
    miner = Miner()
    counter = {"number": 0}
    labels = torch.randint(0, 6, (32,))

    @torch.no_grad()
    def step():
        batch = torch.randn(32, 96)
        losses = nn.functional.cross_entropy(model(batch), labels, reduction="none")
        miner.consider(counter["number"], batch, losses)
        counter["number"] += 1
        return losses.mean().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("hard_examples",),
    "line_contains": ("self.hard_examples.append(batch[worst])",),
    "graph": False,
    "bytes_per_step": 219,
    "note": "1536 bytes, but only each seventh step",
}
