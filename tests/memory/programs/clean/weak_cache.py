"""Features are shared as long as somebody uses them."""

import weakref

import torch
from torch import nn


class FeatureCache:
    def __init__(self):
        self.features = weakref.WeakValueDictionary()

    def get(self, key, compute):
        feature = self.features.get(key)
        if feature is None:
            feature = compute()
            self.features[key] = feature
        return feature


def make():
    model = nn.Linear(20, 200)
    cache = FeatureCache()
    counter = {"step": 0}

    @torch.no_grad()
    def step():
        counter["step"] += 1
        x = torch.randn(5, 20)
        feature = cache.get(counter["step"], lambda: model(x))
        again = cache.get(counter["step"], lambda: model(x))
        return (feature + again).mean().item()

    return step


EXPECTED = {"verdict": "stable", "note": "weak references keep nothing alive"}
