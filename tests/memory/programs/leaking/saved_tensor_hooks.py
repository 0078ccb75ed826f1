"""How much does autograd save for the backward pass? Count it with hooks."""

import torch
from torch import nn


class SavedBytes:
    def __init__(self):
        self.total = 0

    def pack(self, tensor):
        self.total += tensor.nbytes
        return tensor

    def unpack(self, packed):
        return packed

    def measure(self, function):
        self.total = 0
        with torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
            function()
        return self.total


def make():
    model = nn.Sequential(nn.Linear(32, 64), nn.Sigmoid(), nn.Linear(64, 8))
    meter = SavedBytes()
    x = torch.randn(16, 32)

    def step():
        return meter.measure(lambda: model(x).softmax(dim=1))

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("pack", "saved_tensors_hooks", "cycle", "grad_fn"),
    "line_contains": ("return tensor", "return meter.measure(lambda: model(x).softmax(dim=1))"),
    "graph": True,
    "bytes_per_step": None,
    "note": "packing a node's own output as it is makes a cycle that nothing collects when backward never runs",
}
