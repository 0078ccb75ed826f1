"""A small classifier and its data, the same each time."""

from __future__ import annotations

import pytest
import torch


class Rows(torch.utils.data.Dataset):
    broken_at = None

    def __len__(self):
        return 96

    def __getitem__(self, index):
        if index == self.broken_at:
            raise ZeroDivisionError
        generator = torch.Generator().manual_seed(index)
        return {"x": torch.randn(8, generator=generator), "labels": torch.tensor(index % 2)}


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 2)
        )

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.fixture
def rows():
    return Rows()


@pytest.fixture
def classifier():
    torch.manual_seed(0)
    return Classifier()
