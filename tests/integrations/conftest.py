"""A small classifier and its data, the same each time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

FRAMEWORKS = {"test_transformers.py", "test_lightning.py"}
"""Slow tests: importing one makes every later search for who holds a tensor in the same process walk its objects."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Quick tests import no framework."""
    quick = "not slow" in config.getoption("markexpr")
    return True if quick and collection_path.name in FRAMEWORKS else None


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
