"""Online prediction with an LSTM cell whose state is carried from call to call."""

import torch
from torch import nn


class OnlinePredictor:
    def __init__(self):
        self.cell = nn.GRUCell(16, 32)
        self.readout = nn.Linear(32, 1)
        self.hidden = torch.zeros(4, 32)

    def predict(self, reading):
        self.hidden = self.cell(reading, self.hidden)
        return self.readout(self.hidden).squeeze(1).tolist()


def make():
    predictor = OnlinePredictor()

    def step():
        return predictor.predict(torch.randn(4, 16))

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("hidden",),
    "line_contains": (
        "self.hidden = self.cell(reading, self.hidden)",
        "return predictor.predict(torch.randn(4, 16))",
    ),
    "graph": True,
    "bytes_per_step": None,
    "note": "the state is never detached, so that its graph reaches back to the first reading",
}
