"""Training that waits for its data: samples are decoded pixel by pixel in Python."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm

SIZE = 32


class Pictures(Dataset):
    """Run-length encoded grey pictures; decoded whenever they are asked for, or once and at once."""

    def __init__(self, prepared: bool) -> None:
        self.runs = [[(7 * i + j) % 251 for j in range(SIZE * SIZE // 4)] for i in range(64)]
        self.pictures = decode_all(self.runs) if prepared else None

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = decode(self.runs[index]) if self.pictures is None else self.pictures[index]
        return picture, index % 10


def decode(runs: list[int]) -> torch.Tensor:
    """Each value stands for a run of four pixels."""
    pixels = []
    for value in runs:
        for _ in range(4):
            scaled = value / 255.0
            pixels.append((scaled - 0.5) / 0.25 + sum(scaled**power for power in range(8)) * 1e-3)
    return torch.tensor(pixels).reshape(1, SIZE, SIZE)


def decode_all(runs: list[list[int]]) -> torch.Tensor:
    """The same for all pictures and pixels at once."""
    scaled = torch.tensor(runs) / 255.0
    powers = torch.stack([scaled**power for power in range(8)]).sum(0)
    pixels = (scaled - 0.5) / 0.25 + powers * 1e-3
    return pixels.repeat_interleave(4, dim=1).reshape(-1, 1, SIZE, SIZE)


def training(prepared: bool) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 28 * 28, 10),
    )
    return pm.Training(
        model,
        nn.CrossEntropyLoss(),
        torch.optim.SGD(model.parameters(), lr=0.01),
        DataLoader(Pictures(prepared), batch_size=16),
        unit="images",
    )


def workload() -> pm.Training:
    return training(prepared=False)


def fixed() -> pm.Training:
    return training(prepared=True)
