"""PYR308: the same preprocessing in every epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.transforms import v2

"""
LOOP = """
for epoch in range(10):
    for x, y in loader:
        model(x).sum().backward()
"""

FIRES = {
    "a folder of images": """
prepare = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder("train", transform=prepare), shuffle=True)  # <-
""",
    "version 2": """
data = datasets.ImageFolder("train", transform=v2.Compose([v2.CenterCrop(64), v2.Normalize(0.5, 0.5)]))
loader = DataLoader(data, shuffle=True)  # <-
""",
}

SILENT = {
    "something is random": """
prepare = transforms.Compose([transforms.RandomCrop(64), transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder("train", transform=prepare), shuffle=True)
""",
    "something of the user's": """
prepare = transforms.Compose([transforms.Resize(64), Augment()])
loader = DataLoader(datasets.ImageFolder("train", transform=prepare), shuffle=True)
""",
    "evaluation": """
prepare = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
loader = DataLoader(datasets.ImageFolder("val", transform=prepare))
""",
    "in memory": """
prepare = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
loader = DataLoader(datasets.MNIST("train", transform=prepare), shuffle=True)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_loader(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR308", HEAD + text + LOOP) == marked(HEAD + text + LOOP)
    once = LOOP.replace("epoch in range(10)", "x in [1]")
    assert lines("PYR308", HEAD + text + once) == [], "it is used once"


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR308", HEAD + text + LOOP) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR308")


def test_samples_that_are_kept_are_made_once() -> None:
    made = []

    class Numbers(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> int:
            made.append(index)
            return index

    dataset = Numbers()
    kept = [dataset[i] for i in range(len(dataset))]
    for data, expected in ((dataset, 15), (kept, 0)):
        made.clear()
        loader = torch.utils.data.DataLoader(data, batch_size=2)
        epochs = [torch.cat(list(loader)).tolist() for _ in range(3)]
        assert epochs == [list(range(5))] * 3
        assert len(made) == expected


def test_the_advice_of_a_real_sample_profile_is_carried(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    import pyrometer as pm

    class Sums(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 40

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.tensor([float(sum(range(20_000 + index)))])

    profile = pm.profile_samples(torch.utils.data.DataLoader(Sums(), batch_size=4), budget_s=1.0)
    (finding,) = findings("PYR308", Case(target="a", loading=loading(advice=profile.advice)))
    assert finding.severity == "warning"
    assert finding.advice.gain is not None
