"""A detector whose post-processing looks at tensor values, as many do: torch.compile has to break its graph.

pyrometer compile examples/detector.py:workload     # the breaks, and what to write instead
pyrometer compile examples/detector.py:fixed        # rewritten: one graph
"""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm

THRESHOLD = 0.6


class Detector(nn.Module):
    """As written at first: plain Python over tensor values."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.SiLU(),
        )
        self.scores = nn.Conv2d(width, 1, 1)
        self.boxes = nn.Conv2d(width, 4, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.layers(images)
        boxes = self.boxes(features).flatten(2).squeeze(0)
        scores = self.scores(features).sigmoid().flatten()
        if scores.max() < THRESHOLD:
            scores = scores * 2
        certain = scores[scores > THRESHOLD].sum()
        weight = scores.mean().item()
        return (boxes * scores).sum(1) * weight + certain


class FixedDetector(Detector):
    """The same as advised: nothing leaves the graph."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.layers(images)
        boxes = self.boxes(features).flatten(2).squeeze(0)
        scores = self.scores(features).sigmoid().flatten()
        scores = torch.where(scores.max() < THRESHOLD, scores * 2, scores)
        certain = torch.where(scores > THRESHOLD, scores, 0).sum()
        weight = scores.mean().detach()
        return (boxes * scores).sum(1) * weight + certain


def workload() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Detector(), torch.randn(1, 3, 96, 96), unit="images")


def fixed() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(FixedDetector(), torch.randn(1, 3, 96, 96), unit="images")
