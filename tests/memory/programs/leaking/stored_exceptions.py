"""Batch scoring that carries on after a bad sample and reports all failures at the end."""

import torch
from torch import nn


class BatchScorer:
    def __init__(self):
        self.model = nn.Linear(64, 8)
        self.failures = []
        self.scored = 0

    def score(self, batch):
        scores = self.model(batch)
        if not torch.isfinite(scores).all():
            raise FloatingPointError("scores are not finite")
        return scores

    def score_safely(self, batch):
        try:
            with torch.no_grad():
                scores = self.score(batch)
        except FloatingPointError as error:
            self.failures.append(error)
            return None
        self.scored += len(scores)
        return scores


def make():
    scorer = BatchScorer()
    counter = {"batches": 0}

    def step():
        counter["batches"] += 1
        features = torch.rand(32, 64)
        if counter["batches"] % 3 == 0:
            features[0] = float("inf")
        return scorer.score_safely(features)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("failures",),
    "line_contains": (
        "self.failures.append(error)",
        "features = torch.rand(32, 64)",
        "scores = self.model(batch)",
    ),
    "graph": False,
    "bytes_per_step": None,
    "note": "an exception's traceback holds the frames, and the frames hold batch and scores",
}
