"""Trains a temporal convolutional forecaster of electricity demand."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

import pyrometer as pm

PAST, AHEAD, METERS, BATCH = 336, 24, 8, 32


class DilatedBlock(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.convolve = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mix(torch.relu(self.convolve(x)))


class DemandNet(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.read = nn.Conv1d(METERS, width, 1)
        self.blocks = nn.Sequential(*(DilatedBlock(width, 2**n) for n in range(5)))
        self.head = nn.Linear(width, METERS * AHEAD)

    def forward(self, past: Tensor) -> Tensor:
        return self.head(self.blocks(self.read(past)).mean(-1)).view(-1, METERS, AHEAD)


class Windows:
    """Windows of one long recording, cut as views."""

    def __init__(self, hours: int = 6000) -> None:
        generator = torch.Generator().manual_seed(2)
        noise = torch.randn(METERS, hours, generator=generator)
        self.windows = (noise + torch.sin(torch.arange(hours) / 24 * 6.2832)).unfold(1, PAST + AHEAD, 12)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, self.windows.shape[1] - BATCH, BATCH):
            batch = self.windows[:, start : start + BATCH].transpose(0, 1)
            yield batch[..., :PAST], batch[..., PAST:]


def workload() -> pm.Training:
    torch.manual_seed(0)
    model = DemandNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    return pm.Training(model, nn.HuberLoss(), optimizer, Windows(), unit="windows")
