"""A video model looks at the last eight frames."""

from collections import deque

import torch
from torch import nn


class ClipModel:
    window = 8

    def __init__(self):
        self.frames = deque()
        self.head = nn.Linear(self.window * 16, 5)

    def push(self, frame):
        self.frames.append(nn.functional.adaptive_avg_pool2d(frame, 16))

    def predict(self):
        clip = list(self.frames)[-self.window :]
        if len(clip) < self.window:
            return None
        features = torch.stack([frame.mean(dim=(0, 1)) for frame in clip]).flatten()
        with torch.no_grad():
            return self.head(features).argmax().item()


def make():
    model = ClipModel()

    def step():
        model.push(torch.rand(3, 32, 32))
        return model.predict()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("frames",),
    "line_contains": ("self.frames.append(nn.functional.adaptive_avg_pool2d(frame, 16))",),
    "graph": False,
    "bytes_per_step": 3072,
    "note": "the deque has no maxlen",
}
