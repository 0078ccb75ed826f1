"""Layers are unfrozen one after the other, each fourth step."""

import torch
from torch import nn


class GradualUnfreezing:
    def __init__(self):
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
        self.layers[:-1].requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.layers.parameters())
        self.count = 0

    def train_step(self, x):
        self.count += 1
        if self.count % 4 == 0 and self.count <= 12:
            self.layers[-1 - self.count // 4].requires_grad_(True)
        self.optimizer.zero_grad()
        for layer in self.layers:
            x = torch.tanh(layer(x))
        loss = x.square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def make():
    training = GradualUnfreezing()
    x = torch.randn(8, 32)

    def step():
        return training.train_step(x)

    return step


EXPECTED = {
    "verdict": "allocator warm-up",
    "note": "optimizer state grows in four stages and is complete after twelve steps",
}
