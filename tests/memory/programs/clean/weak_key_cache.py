"""Norms of batches are remembered as long as the batch lives."""

import weakref

import torch


class Batch:
    def __init__(self, data):
        self.data = data


class NormCache:
    def __init__(self):
        self.norms = weakref.WeakKeyDictionary()

    def norm(self, batch):
        if batch not in self.norms:
            self.norms[batch] = batch.data.norm(dim=1)
        return self.norms[batch]


def make():
    cache = NormCache()
    window = []

    def step():
        window.append(Batch(torch.randn(16, 40)))
        if len(window) > 3:
            window.pop(0)
        return sum(cache.norm(batch).sum().item() for batch in window)

    return step


EXPECTED = {"verdict": "stable", "note": "entries die with their keys, three steps later"}
