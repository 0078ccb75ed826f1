"""Observations form a linked list, so that the estimator can look back."""

import torch


class Observation:
    def __init__(self, value, previous):
        self.value = value
        self.previous = previous


class Estimator:
    def __init__(self, lookback=5):
        self.lookback = lookback
        self.latest = None

    def observe(self, value):
        self.latest = Observation(value, self.latest)

    def estimate(self):
        total, node, count = torch.zeros(()), self.latest, 0
        while node is not None and count < self.lookback:
            total = total + node.value.mean()
            node, count = node.previous, count + 1
        return (total / count).item()


def make():
    estimator = Estimator()

    def step():
        estimator.observe(torch.randn(200))
        return estimator.estimate()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("latest", "previous"),
    "line_contains": ("self.latest = Observation(value, self.latest)", "estimator.observe(torch.randn(200))"),
    "graph": False,
    "bytes_per_step": 800,
    "note": "the chain is walked for five links and kept for ever",
}
