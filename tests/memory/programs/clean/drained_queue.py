"""A logging queue between the training loop and the writer, which takes all there is now and then."""

import queue

import torch
from torch import nn

metrics_queue = queue.Queue()


class Writer:
    def __init__(self, every):
        self.every = every
        self.calls = 0
        self.written = 0

    def poll(self):
        self.calls += 1
        if self.calls % self.every == 0:
            while not metrics_queue.empty():
                self.written += int(metrics_queue.get_nowait()["histogram"].sum())


def make():
    model = nn.Linear(256, 32)
    writer = Writer(every=6)
    batch = torch.randn(8, 256)

    @torch.no_grad()
    def step():
        metrics_queue.put({"histogram": torch.histc(model(batch), bins=64)})
        writer.poll()
        return metrics_queue.qsize()

    return step


EXPECTED = {"verdict": "stable", "note": "emptied each six steps"}
