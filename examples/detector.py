"""A detector whose post-processing looks at tensor values, as many do: torch.compile has to break its graph.

    pyrometer compile examples/detector.py:workload     # the breaks, and what to write instead
    pyrometer compile examples/detector.py:fixed        # rewritten: one graph
"""

import torch
from torch import nn

import pyrometer as pm

THRESHOLD = 0.6


class Backbone(nn.Module):
    def __init__(self, width=24):
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

    def forward(self, images):
        features = self.layers(images)
        scores = self.scores(features).sigmoid().flatten()
        boxes = self.boxes(features).flatten(2).squeeze(0).transpose(0, 1)
        return scores, boxes


class Detector(nn.Module):
    """As written at first: plain Python over tensor values."""

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()

    def forward(self, images):
        scores, boxes = self.backbone(images)
        if scores.max() > 1:
            scores = scores / scores.max()
        best = scores.argmax().item()
        weight = scores.mean().item()
        keep = boxes[scores > THRESHOLD]
        return keep.sum() + boxes[best].sum() * weight


class FixedDetector(Detector):
    """The same without a look at a value: nothing leaves the graph."""

    def forward(self, images):
        scores, boxes = self.backbone(images)
        scores = torch.where(scores.max() > 1, scores / scores.max(), scores)
        best = scores.argmax(0, keepdim=True)
        weight = scores.mean()
        keep = torch.where((scores > THRESHOLD).unsqueeze(1), boxes, 0)
        return keep.sum() + boxes.index_select(0, best).sum() * weight


def workload():
    torch.manual_seed(0)
    return pm.Inference(Detector(), torch.randn(1, 3, 96, 96), unit="images")


def fixed():
    torch.manual_seed(0)
    return pm.Inference(FixedDetector(), torch.randn(1, 3, 96, 96), unit="images")
