"""Outputs are gathered over an epoch and joined at its end."""

import torch
from torch import nn


class EpochLoop:
    steps_per_epoch = 10

    def __init__(self):
        self.model = nn.Linear(64, 16)
        self.step_outputs = []
        self.epoch_outputs = []

    @torch.no_grad()
    def run_step(self):
        self.step_outputs.append(self.model(torch.randn(8, 64)))
        if len(self.step_outputs) == self.steps_per_epoch:
            self.on_epoch_end()
        return len(self.step_outputs)

    def on_epoch_end(self):
        self.epoch_outputs.append(torch.cat(self.step_outputs))
        self.step_outputs.clear()


def make():
    return EpochLoop().run_step


EXPECTED = {
    "verdict": "leak",
    "holder": ("epoch_outputs",),
    "line_contains": ("self.epoch_outputs.append(torch.cat(self.step_outputs))",),
    "graph": False,
    "bytes_per_step": 512,
    "note": "the list of steps is cleared, that of epochs is not: 5120 bytes in ten steps",
}
