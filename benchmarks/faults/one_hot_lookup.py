"""Inference that looks up rows of a table by a product with one-hot rows."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm

WORDS = 1000


class Lookup(nn.Module):
    """Vectors of words, and a layer over them."""

    def __init__(self, by_product: bool) -> None:
        super().__init__()
        self.by_product = by_product
        self.table = nn.Parameter(torch.randn(WORDS, 64))
        self.layer = nn.Linear(64, 256)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Look up, and apply the layer."""
        if self.by_product:
            vectors = functional.one_hot(words, WORDS).float() @ self.table
        else:
            vectors = functional.embedding(words, self.table)
        return self.layer(vectors)


def inference(by_product: bool) -> pm.Inference:
    torch.manual_seed(0)
    words = torch.randint(0, WORDS, (1024,))
    return pm.Inference(Lookup(by_product), (words,), unit="words", per_step=1024)


def workload() -> pm.Inference:
    return inference(by_product=True)


def fixed() -> pm.Inference:
    return inference(by_product=False)
