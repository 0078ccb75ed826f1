"""A logging queue between the training loop and the writer."""

import queue

import torch
from torch import nn

metrics_queue = queue.Queue()


class Writer:
    def __init__(self, every):
        self.every = every
        self.calls = 0
        self.last = None

    def poll(self):
        self.calls += 1
        if self.calls % self.every == 0:
            self.last = metrics_queue.get_nowait()


def make():
    model = nn.Linear(256, 32)
    writer = Writer(every=3)
    batch = torch.randn(8, 256)

    @torch.no_grad()
    def step():
        histogram = torch.histc(model(batch), bins=64)
        metrics_queue.put({"histogram": histogram})
        writer.poll()
        return metrics_queue.qsize()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("metrics_queue",),
    "line_contains": ('metrics_queue.put({"histogram": histogram})', "histogram = torch.histc"),
    "graph": False,
    "bytes_per_step": 171,
    "note": "three go in for each that is taken out: two of three histograms of 256 bytes stay",
}
