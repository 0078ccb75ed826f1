"""Scores of the whole test set in one tensor."""

import torch
from torch import nn


class ScoreBook:
    def __init__(self):
        self.scores = torch.empty(0)

    def add(self, batch_scores):
        self.scores = torch.cat([self.scores, batch_scores])

    def percentile(self, q):
        return torch.quantile(self.scores, q).item()


def make():
    model = nn.Linear(80, 1)
    book = ScoreBook()

    @torch.no_grad()
    def step():
        book.add(model(torch.randn(64, 80)).squeeze(1))
        return book.percentile(0.9)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("scores", "book"),
    "line_contains": ("self.scores = torch.cat([self.scores, batch_scores])",),
    "graph": False,
    "bytes_per_step": 256,
    "note": "one tensor that is always replaced by a longer one",
}
