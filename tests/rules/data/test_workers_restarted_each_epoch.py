"""PYR305: workers started for every epoch."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = """
import torch
from torch.utils.data import DataLoader

def train_one(model, batches):
    for x in batches:
        model(x)

"""

FIRES = {
    "a loop in a loop": """
loader = DataLoader(data, num_workers=4)  # <-
for epoch in range(10):
    for i, x in enumerate(loader):
        model(x)
""",
    "through a function": """
loader = DataLoader(data, num_workers=4, persistent_workers=False)  # <-
for _ in range(num_epochs):
    train_one(model, loader)
""",
}

SILENT = {
    "kept": """
loader = DataLoader(data, num_workers=4, persistent_workers=True)
for epoch in range(10):
    for x in loader:
        model(x)
""",
    "no workers": """
loader = DataLoader(data)
for epoch in range(10):
    for x in loader:
        model(x)
""",
    "one epoch": """
loader = DataLoader(data, num_workers=4)
for x in loader:
    model(x)
""",
    "made in every epoch": """
for epoch in range(10):
    loader = DataLoader(parts[epoch], num_workers=4)
    for x in loader:
        model(x)
""",
    "a number from elsewhere": """
loader = DataLoader(data, num_workers=args.workers)
for epoch in range(10):
    for x in loader:
        model(x)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_loader(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR305", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR305", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR305")


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_the_fix_keeps_the_workers(text: str, fixed: Callable[[str, str], str]) -> None:
    assert "num_workers=4, persistent_workers=True)" in fixed("PYR305", HEAD + text)


class Process(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Says who made a sample."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        return os.getpid()


@pytest.mark.parametrize("kept", [False, True])
def test_workers_that_are_kept_are_the_same_in_the_next_epoch(kept: bool) -> None:
    loader = torch.utils.data.DataLoader(Process(), num_workers=1, persistent_workers=kept)
    epochs = [{int(one) for one in loader} for _ in range(2)]
    assert (epochs[0] == epochs[1]) is kept


def test_the_loaders_advice_is_carried(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(
        verdict="slow-start",
        data_share=0.02,
        advice=[advice("persistent-workers", 0.01, "persistent_workers")],
    )
    (finding,) = findings("PYR305", Case(target="a", loading=report))
    assert (finding.severity, finding.advice.lever) == ("warning", "persistent_workers")
