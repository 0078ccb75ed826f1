"""Outputs are gathered over an epoch, scored, and dropped."""

import torch
from torch import nn


class EpochLoop:
    steps_per_epoch = 10

    def __init__(self):
        self.model = nn.Linear(64, 16)
        self.step_outputs = []
        self.scores = []

    @torch.no_grad()
    def run_step(self):
        self.step_outputs.append(self.model(torch.randn(8, 64)))
        if len(self.step_outputs) == self.steps_per_epoch:
            self.on_epoch_end()
        return len(self.scores)

    def on_epoch_end(self):
        self.scores.append(torch.cat(self.step_outputs).mean().item())
        self.step_outputs.clear()


def make():
    return EpochLoop().run_step


EXPECTED = {"verdict": "stable", "note": "grows for ten steps and starts over"}
