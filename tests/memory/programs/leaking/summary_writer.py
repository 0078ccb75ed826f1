"""A writer in the manner of TensorBoard that flushes when enough scalars came in."""

import torch
from torch import nn


class SummaryWriter:
    def __init__(self, flush_after=20):
        self.flush_after = flush_after
        self.num_scalars = 0
        self.pending_events = []

    def add_scalar(self, tag, value):
        self.pending_events.append((tag, value))
        self.num_scalars += 1
        if self.num_scalars >= self.flush_after:
            self.flush()

    def add_image(self, tag, image):
        self.pending_events.append((tag, image.clone()))

    def flush(self):
        self.pending_events.clear()
        self.num_scalars = 0


def make():
    generator = nn.Sequential(nn.Linear(16, 256), nn.Tanh())
    writer = SummaryWriter()

    @torch.no_grad()
    def step():
        images = generator(torch.randn(4, 16)).view(4, 1, 16, 16)
        writer.add_image("samples", images[:2])
        return images.mean().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("pending_events",),
    "line_contains": ("self.pending_events.append((tag, image.clone()))",),
    "graph": False,
    "bytes_per_step": 2048,
    "note": "only scalars count towards the flush, and only images are written",
}
