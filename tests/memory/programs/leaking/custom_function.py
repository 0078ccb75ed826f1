"""A straight-through estimator with its own backward, which looks its input up instead of saving it."""

import itertools

import torch
from torch import nn


class Clamp(torch.autograd.Function):
    stash = {}
    tickets = itertools.count()

    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        ctx.ticket = next(Clamp.tickets)
        Clamp.stash[ctx.ticket] = x
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad_output):
        x = Clamp.stash.pop(ctx.ticket)
        return grad_output * (x.abs() <= ctx.limit), None


def make():
    model = nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(16, 32)
    counter = {"step": 0}

    def step():
        counter["step"] += 1
        loss = Clamp.apply(torch.tanh(model(x)), 0.5).sum()
        if counter["step"] % 3 == 0:
            return loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("stash",),
    "line_contains": ("Clamp.stash[ctx.ticket] = x", "loss = Clamp.apply(torch.tanh(model(x)), 0.5).sum()"),
    "graph": True,
    "bytes_per_step": None,
    "note": "each third step evaluates without backward, and only backward takes out of the stash",
}
