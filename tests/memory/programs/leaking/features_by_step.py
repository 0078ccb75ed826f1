"""Contrastive pairs look up the features of an earlier step."""

import torch
from torch import nn

FEATURES = {}


def make():
    backbone = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten())
    frame = torch.randn(2, 1, 20, 20)
    clock = {"step": 0}

    def step():
        now = clock["step"]
        with torch.no_grad():
            FEATURES[now] = backbone(frame)
        earlier = FEATURES.get(now - 3, FEATURES[now])
        clock["step"] += 1
        return torch.cosine_similarity(FEATURES[now], earlier).mean().item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("FEATURES",),
    "line_contains": ("FEATURES[now] = backbone(frame)",),
    "graph": False,
    "bytes_per_step": 2592,
    "note": "2 x 324 floats per step, of which only the last three are looked at",
}
