"""Beam search whose number of beams changes from token to token."""

import torch
from torch import nn


class BeamSearch:
    def __init__(self):
        self.model = nn.Linear(16, 30)
        self.embedding = nn.Embedding(30, 16)
        self.beams = [(0.0, torch.zeros(1, dtype=torch.long))]
        self.done = 0

    @torch.no_grad()
    def advance(self):
        grown = []
        for score, tokens in self.beams:
            log_probs = self.model(self.embedding(tokens).mean(dim=0)).log_softmax(dim=0)
            best = log_probs.topk(3)
            grown += [
                (score + value.item(), torch.cat([tokens, index[None]]))
                for value, index in zip(best.values, best.indices)
            ]
        grown.sort(key=lambda beam: -beam[0])
        self.beams = grown[:4]
        if len(self.beams[0][1]) > 12:
            self.beams = [(0.0, torch.zeros(1, dtype=torch.long))]
            self.done += 1
        return len(self.beams)


def make():
    return BeamSearch().advance


EXPECTED = {"verdict": "stable", "note": "sequences of twelve tokens, then the next one"}
