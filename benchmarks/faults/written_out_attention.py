"""Inference with attention in single operators."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm

HEADS = 4


class Attention(nn.Module):
    """Self-attention over a sequence, written out or by the fused operator."""

    def __init__(self, written_out: bool) -> None:
        super().__init__()
        self.written_out = written_out
        self.enter = nn.Linear(128, 3 * 128)
        self.leave = nn.Linear(128, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix the values of all positions."""
        batch, length, _ = x.shape
        heads = self.enter(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = heads[0], heads[1], heads[2]
        if self.written_out:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            mixed = torch.softmax(scores, dim=-1) @ v
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v)
        return self.leave(mixed.transpose(1, 2).reshape(batch, length, -1))


def inference(written_out: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Attention(written_out), (torch.randn(2, 768, 128),), unit="sequences", per_step=2)


def workload() -> pm.Inference:
    return inference(written_out=True)


def fixed() -> pm.Inference:
    return inference(written_out=False)
