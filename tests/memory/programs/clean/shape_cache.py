"""Masks are cached by sequence length; lengths are rounded up to multiples of eight."""

import torch


class MaskCache:
    def __init__(self):
        self.masks = {}

    def get(self, length):
        padded = -(-length // 8) * 8
        if padded not in self.masks:
            self.masks[padded] = torch.ones(padded, padded).tril()
        return self.masks[padded]


def make():
    cache = MaskCache()
    request = {"number": 0}

    def step():
        request["number"] += 1
        length = 9 + request["number"] * 37 % 120
        mask = cache.get(length)
        x = torch.randn(mask.shape[0], 16)
        return (mask @ x).mean().item()

    return step


EXPECTED = {"verdict": "allocator warm-up", "note": "saturates at sixteen lengths within some twenty steps"}
