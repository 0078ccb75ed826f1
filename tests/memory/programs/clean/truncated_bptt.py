"""A recurrent model over an endless stream, with the state detached between chunks."""

import torch
from torch import nn


def make():
    rnn = nn.GRU(16, 32, batch_first=True)
    readout = nn.Linear(32, 16)
    optimizer = torch.optim.Adam([*rnn.parameters(), *readout.parameters()])
    carry = {"state": torch.zeros(1, 4, 32)}

    def step():
        chunk = torch.randn(4, 10, 16)
        output, state = rnn(chunk, carry["state"])
        loss = (readout(output[:, :-1]) - chunk[:, 1:]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        carry["state"] = state.detach()
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "the detached state replaces the former"}
