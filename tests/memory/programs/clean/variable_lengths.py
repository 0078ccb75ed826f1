"""Batches of sentences of varying length."""

import torch
from torch import nn


def make():
    embedding = nn.Embedding(200, 32)
    encoder = nn.GRU(32, 32, batch_first=True)
    parameters = [*embedding.parameters(), *encoder.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    counter = {"step": 0}

    def step():
        counter["step"] += 1
        length = 4 + counter["step"] * 13 % 23
        tokens = torch.randint(0, 200, (4, length))
        optimizer.zero_grad()
        output, _ = encoder(embedding(tokens))
        loss = output.square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "memory goes up and down with the length and comes back"}
