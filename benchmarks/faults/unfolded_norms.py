"""Inference of a convolution network whose batch norms could be part of the convolutions."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

import pyrometer as pm


def network(folded: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(6):
        conv, norm = nn.Conv2d(32, 32, 1).eval(), nn.BatchNorm2d(32).eval()
        layers += [fuse_conv_bn_eval(conv, norm)] if folded else [conv, norm]
    return nn.Sequential(*layers).eval()


def inference(folded: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(network(folded), (torch.randn(4, 32, 64, 64),), unit="images", per_step=4)


def workload() -> pm.Inference:
    return inference(folded=False)


def fixed() -> pm.Inference:
    return inference(folded=True)
