"""Prompt embeddings are cached, because many users ask the same."""

import functools

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)

    @functools.lru_cache(maxsize=None)
    def encode(self, prompt):
        tokens = torch.tensor([hash_token(word) for word in prompt.split()])
        with torch.no_grad():
            return self.embedding(tokens).mean(dim=0)


def hash_token(word):
    return sum(ord(letter) for letter in word) % 1000


def make():
    encoder = Encoder()
    turn = {"number": 0}

    def step():
        turn["number"] += 1
        return encoder.encode(f"user {turn['number']} asks for the weather").norm().item()

    return step


EXPECTED = {
    "verdict": "growing cache",
    "holder": ("encode", "lru_cache"),
    "line_contains": ("return self.embedding(tokens).mean(dim=0)",),
    "graph": False,
    "bytes_per_step": 256,
    "note": "every prompt is different, and the cache has no bound",
}
