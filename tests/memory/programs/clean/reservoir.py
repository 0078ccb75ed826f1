"""A uniform sample of the stream: every batch has the same chance to be among the twelve that are kept."""

import random

import torch


class Reservoir:
    def __init__(self, size):
        self.size = size
        self.kept = []
        self.seen = 0

    def offer(self, batch):
        self.seen += 1
        if len(self.kept) < self.size:
            self.kept.append(batch)
            return
        place = random.randrange(self.seen)
        if place < self.size:
            self.kept[place] = batch


def make():
    reservoir = Reservoir(12)

    def step():
        batch = torch.randn(8, 128)
        reservoir.offer(batch)
        return torch.stack(reservoir.kept).mean().item()

    return step


EXPECTED = {"verdict": "stable", "note": "survivors of all ages, but always twelve"}
