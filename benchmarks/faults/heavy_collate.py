"""Training that waits for a collate function that fills its batch number by number."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm

LENGTH = 128


class Sequences(Dataset):
    """Sequences of numbers as tensors of different lengths."""

    def __init__(self) -> None:
        self.rows = [torch.arange(LENGTH - i % 32, dtype=torch.float32) / LENGTH for i in range(256)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


def by_numbers(rows: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    batch = torch.zeros(len(rows), LENGTH)
    for i, row in enumerate(rows):
        for j, value in enumerate(row.tolist()):
            batch[i, j] = value
    return batch, batch.mean(dim=1, keepdim=True)


def by_rows(rows: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    batch = torch.zeros(len(rows), LENGTH)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
    return batch, batch.mean(dim=1, keepdim=True)


def training(whole_rows: bool) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(LENGTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)
    )
    loader = DataLoader(Sequences(), batch_size=8, collate_fn=by_rows if whole_rows else by_numbers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return pm.Training(model, nn.MSELoss(), optimizer, loader, unit="sequences")


def workload() -> pm.Training:
    return training(whole_rows=False)


def fixed() -> pm.Training:
    return training(whole_rows=True)
