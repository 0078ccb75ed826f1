"""Training that waits a little for lines of text that are parsed when they are asked for."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm


class Lines(Dataset):
    """Numbers as text, parsed for each sample or once."""

    def __init__(self, parsed: bool) -> None:
        self.lines = [",".join(str((i * j) % 97 / 97) for j in range(256)) for i in range(128)]
        self.rows = [parse(line) for line in self.lines] if parsed else None

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return (parse(self.lines[index]) if self.rows is None else self.rows[index]), index % 10


def parse(line: str) -> torch.Tensor:
    return torch.tensor([float(word) for word in line.split(",")])


def training(parsed: bool) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    loader = DataLoader(Lines(parsed), batch_size=64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return pm.Training(model, nn.CrossEntropyLoss(), optimizer, loader, unit="lines")


def workload() -> pm.Training:
    return training(parsed=False)


def fixed() -> pm.Training:
    return training(parsed=True)
