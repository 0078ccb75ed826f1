"""Metrics are computed later, at the end of the epoch that never comes."""

import torch
from torch import nn


class Metrics:
    def __init__(self):
        self.deferred = []

    def later(self, compute):
        self.deferred.append(compute)

    def flush(self):
        results = [compute() for compute in self.deferred]
        self.deferred.clear()
        return results


def make():
    model = nn.Linear(100, 10)
    metrics = Metrics()
    images = torch.randn(12, 100)

    @torch.no_grad()
    def step():
        scores = model(images).softmax(dim=1)
        metrics.later(lambda: scores.max(dim=1).values.mean().item())
        return scores

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("deferred",),
    "line_contains": ("self.deferred.append(compute)", "scores = model(images).softmax(dim=1)"),
    "graph": False,
    "bytes_per_step": 480,
    "note": "each lambda closes over the scores of its step, 12 x 10 floats",
}
