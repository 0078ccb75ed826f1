"""Text is decoded as a stream of chunks; the reader stops at the first full sentence."""

import torch
from torch import nn


class Decoder:
    def __init__(self):
        self.cell = nn.GRUCell(32, 32)
        self.streams = []

    def stream(self, prompt):
        state = torch.zeros(len(prompt), 32)
        for _ in range(20):
            with torch.no_grad():
                state = self.cell(prompt, state)
            yield state

    def open(self, prompt):
        stream = self.stream(prompt)
        self.streams.append(stream)
        return stream


def make():
    decoder = Decoder()

    def step():
        stream = decoder.open(torch.randn(8, 32))
        first = next(stream)
        second = next(stream)
        return (second - first).norm().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("streams",),
    "line_contains": (
        "self.streams.append(stream)",
        "state = self.cell(prompt, state)",
        "stream = decoder.open(torch.randn(8, 32))",
    ),
    "graph": False,
    "bytes_per_step": 2048,
    "note": "a suspended generator keeps its frame with prompt and state",
}
