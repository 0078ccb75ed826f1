"""Inference that copies itself to death: a buffer is grown with `torch.cat`."""

from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm

FRAMES = 100


class Recurrent(nn.Module):
    """Feeds frames one by one to a cell and keeps all outputs."""

    def __init__(self, grow: bool) -> None:
        super().__init__()
        self.grow = grow
        self.cell = nn.Linear(64, 64)

    def forward(self, frames_TBD: torch.Tensor) -> torch.Tensor:
        state_BD = torch.zeros_like(frames_TBD[0])
        history = frames_TBD.new_empty(0, *state_BD.shape)
        kept = []
        for frame_BD in frames_TBD:
            state_BD = torch.tanh(self.cell(state_BD) + frame_BD)
            if self.grow:
                history = torch.cat([history, state_BD[None]])
            else:
                kept.append(state_BD)
        return history if self.grow else torch.stack(kept)


def inference(grow: bool) -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(Recurrent(grow), (torch.randn(FRAMES, 256, 64),), unit="frames", per_step=FRAMES)


def workload() -> pm.Inference:
    return inference(grow=True)


def fixed() -> pm.Inference:
    return inference(grow=False)
