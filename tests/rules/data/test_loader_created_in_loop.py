"""PYR312: loaders made or begun anew in loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

HEAD = """
import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=4, shuffle=True)
"""

FIRES = {
    "one batch of it": """
for step in range(100):
    x = next(iter(loader))  # <-
    model(x)
""",
    "while training": """
while True:
    x, y = next(iter(loader))  # <-
    model(x).backward()
""",
    "made in every epoch": """
for epoch in range(10):
    fresh = DataLoader(data, batch_size=4, num_workers=4)  # <-
    for x in fresh:
        model(x)
""",
}

SILENT = {
    "once": "x = next(iter(loader))\n",
    "an iterator that goes on": """
batches = iter(loader)
for step in range(100):
    x = next(batches)
""",
    "another loader in every round": """
for loader in (train_loader, test_loader):
    x = next(iter(loader))
""",
    "something else": """
for step in range(100):
    key = next(iter(names))
""",
    "a sample every thousand steps": """
for step in range(10000):
    if step % 1000 == 0:
        x = next(iter(loader))
""",
    "made without workers": """
for epoch in range(10):
    fresh = DataLoader(data, batch_size=4)
""",
    "other data in every epoch": """
for epoch in range(10):
    fresh = DataLoader(parts[epoch], batch_size=4, num_workers=4)
""",
    "data that changes": """
for epoch in range(10):
    data.resample(epoch)
    fresh = DataLoader(data, batch_size=4, num_workers=4)
""",
    "one per fold": """
for fold in range(5):
    fresh = DataLoader(data, batch_size=4, num_workers=4)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_call(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR312", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR312", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR312")


def test_an_iterator_that_goes_on_gives_every_sample_once() -> None:
    loader = torch.utils.data.DataLoader(torch.arange(12), batch_size=4)
    begun_anew = [next(iter(loader)).tolist() for _ in range(3)]
    batches = iter(loader)
    going_on = torch.cat([next(batches) for _ in range(3)]).tolist()
    assert begun_anew == [[0, 1, 2, 3]] * 3
    assert going_on == list(range(12))
