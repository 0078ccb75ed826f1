"""The eight hardest batches so far, in a heap."""

import heapq
import itertools

import torch
from torch import nn


class HardestBatches:
    def __init__(self, size):
        self.size = size
        self.heap = []
        self.order = itertools.count()

    def consider(self, loss, batch):
        item = (loss, next(self.order), batch)
        if len(self.heap) < self.size:
            heapq.heappush(self.heap, item)
        else:
            heapq.heappushpop(self.heap, item)


def make():
    model = nn.Linear(64, 4)
    hardest = HardestBatches(8)
    labels = torch.randint(0, 4, (16,))

    @torch.no_grad()
    def step():
        batch = torch.randn(16, 64)
        loss = nn.functional.cross_entropy(model(batch), labels).item()
        hardest.consider(loss, batch)
        return hardest.heap[0][0]

    return step


EXPECTED = {"verdict": "stable", "note": "some batches live long, but never more than eight"}
