"""A pool of buffers to spare the allocator."""

import torch
from torch import nn


class BufferPool:
    def __init__(self):
        self.free = {}

    def acquire(self, shape):
        stack = self.free.setdefault(shape, [])
        return stack.pop() if stack else torch.empty(shape)

    def release(self, buffer):
        self.free[tuple(buffer.shape)].append(buffer)


def make():
    pool = BufferPool()
    model = nn.Linear(48, 48)
    counter = {"step": 0}

    @torch.no_grad()
    def step():
        counter["step"] += 1
        rows = (4, 8, 16)[counter["step"] % 3]
        buffer = pool.acquire((rows, 48))
        torch.addmm(model.bias, torch.randn(rows, 48), model.weight, out=buffer)
        total = buffer.sum().item()
        pool.release(buffer)
        return total

    return step


EXPECTED = {"verdict": "stable", "note": "buffers are found again"}
