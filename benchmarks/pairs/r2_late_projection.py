"""Monocular depth: a small encoder and a feature pyramid that is merged at the finest level."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm

CHANNELS = (24, 48, 96)
WIDTH = 32


def stage(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.ReLU())


class PyramidMerge(nn.Module):
    """Brings all levels to the finest resolution and the same width, and adds them."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.ModuleList(nn.Conv2d(channels, WIDTH, 1) for channels in CHANNELS)

    def forward(self, levels: list[Tensor]) -> Tensor:
        size = levels[0].shape[-2:]
        merged = 0
        for project, level in zip(self.project, levels, strict=True):
            merged = merged + project(F.interpolate(level, size=size, mode="nearest"))
        return F.relu(merged)


class CoarseProjectionMerge(PyramidMerge):
    def forward(self, levels: list[Tensor]) -> Tensor:
        size = levels[0].shape[-2:]
        merged = 0
        for project, level in zip(self.project, levels, strict=True):
            merged = merged + F.interpolate(project(level), size=size, mode="nearest")
        return F.relu(merged)


class DepthNet(nn.Module):
    def __init__(self, merge: PyramidMerge) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stage(a, b) for a, b in zip((3, *CHANNELS), CHANNELS, strict=False))
        self.merge = merge
        self.depth = nn.Conv2d(WIDTH, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        levels = []
        for downsample in self.stages:
            image = downsample(image)
            levels.append(image)
        return F.softplus(self.depth(self.merge(levels)))


def camera(merge: type[PyramidMerge]) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(DepthNet(merge()), torch.rand(1, 3, 192, 256), unit="frames", deadline_s=0.1)


def slow() -> pm.Inference:
    return camera(PyramidMerge)


def fast() -> pm.Inference:
    return camera(CoarseProjectionMerge)
