"""Checkpoints are written every twenty steps; only the latest is kept."""

import io

import torch
from torch import nn


class Checkpointer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.latest = b""

    def save(self):
        file = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, file)
        self.latest = file.getvalue()


def make():
    model = nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    checkpointer = Checkpointer(model, optimizer)
    x = torch.randn(8, 64)
    counter = {"step": 0}

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        counter["step"] += 1
        if counter["step"] % 20 == 0:
            checkpointer.save()
        return len(checkpointer.latest)

    return step


EXPECTED = {"verdict": "stable", "note": "bytes are replaced"}
