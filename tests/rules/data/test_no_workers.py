"""PYR302: decoding in the training process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = """
import cv2
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets

class Photos(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.read(self.paths[index])

    def read(self, path):
        return cv2.imread(path)

class Numbers(Dataset):
    def __getitem__(self, index):
        return self.data[index]

def train(model: torch.nn.Module, loader):
    for x in loader:
        model(x).sum().backward()

"""

FIRES = {
    "a dataset of the file": "train(net, DataLoader(Photos(), batch_size=8))  # <-\n",
    "through its name": """
data = Photos()
loader = DataLoader(data, batch_size=8, num_workers=0)  # <-
""",
    "a folder of images": 'loader = DataLoader(datasets.ImageFolder("train"), 8)  # <-\n',
}

SILENT = {
    "workers": "loader = DataLoader(Photos(), batch_size=8, num_workers=4)\n",
    "workers by place": "loader = DataLoader(Photos(), 8, True, None, None, 4)\n",
    "workers from elsewhere": "loader = DataLoader(Photos(), batch_size=8, num_workers=args.workers)\n",
    "settings from elsewhere": "loader = DataLoader(Photos(), **settings)\n",
    "in memory": "loader = DataLoader(Numbers(), batch_size=8)\n",
    "unknown": "loader = DataLoader(make_dataset(), batch_size=8)\n",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_loader(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR302", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR302", HEAD + text) == []


def test_is_silent_without_a_training(lines: Callable[..., list[int]]) -> None:
    assert lines("PYR302", HEAD.replace(".backward()", "") + FIRES["a folder of images"]) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR302")


class Stored(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Samples that come from slow storage."""

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.01)
        return torch.ones(4)


def slow_step(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
    time.sleep(0.04)
    return model(batch).sum()


def work(**settings: Any) -> Any:
    import pyrometer as pm

    model = torch.nn.Linear(4, 1)
    loader = torch.utils.data.DataLoader(Stored(), batch_size=4, **settings)
    return pm.Training(model, slow_step, torch.optim.SGD(model.parameters(), lr=0.1), loader)


@pytest.mark.measuring
def test_the_loaders_advice_is_carried_and_takes_the_wait_away(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    before = observe(work(), "loading")
    (finding,) = findings("PYR302", before)
    assert finding.advice.lever == "num_workers"
    assert finding.resource == "data"
    assert finding.advice.rewrite is not None
    settings = dict(part.split("=") for part in finding.advice.rewrite.split(", "))
    after = observe(work(**{name: eval(value) for name, value in settings.items()}), "loading")
    assert before.loading is not None
    assert after.loading is not None
    assert before.loading.data_share > 0.4
    assert after.loading.data_share < before.loading.data_share
    assert after.loading.measured_step_s < 0.85 * before.loading.measured_step_s
