"""A pool of buffers to spare the allocator."""

import torch
from torch import nn


class BufferPool:
    def __init__(self):
        self.free = []
        self.reused = 0

    def acquire(self, shape):
        for position, buffer in enumerate(self.free):
            if buffer.shape == shape:
                self.reused += 1
                return self.free.pop(position)
        return torch.empty(shape)

    def release(self, buffer):
        self.free.append(buffer.flatten())


def make():
    pool = BufferPool()
    model = nn.Linear(48, 48)
    x = torch.randn(8, 48)

    @torch.no_grad()
    def step():
        buffer = pool.acquire((8, 48))
        torch.addmm(model.bias, x, model.weight, out=buffer)
        total = buffer.sum().item()
        pool.release(buffer)
        return total

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("free",),
    "line_contains": ("self.free.append(buffer.flatten())", "return torch.empty(shape)"),
    "graph": False,
    "bytes_per_step": 1536,
    "note": "buffers come back flattened, so that none is ever found again",
}
