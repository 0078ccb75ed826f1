"""All intermediate results go to buffers that are made once."""

import torch


class Pipeline:
    def __init__(self, batch, width):
        self.weight = torch.randn(width, width)
        self.hidden = torch.empty(batch, width)
        self.output = torch.empty(batch, width)

    def __call__(self, x):
        torch.mm(x, self.weight, out=self.hidden)
        self.hidden.relu_()
        torch.mm(self.hidden, self.weight, out=self.output)
        return self.output


def make():
    pipeline = Pipeline(16, 48)
    x = torch.randn(16, 48)

    def step():
        scratch = pipeline(x) * 2
        total = scratch.sum().item()
        del scratch
        return total

    return step


EXPECTED = {"verdict": "stable", "note": "out= and del"}
