"""PYR004: a profiler that records a whole run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

HEAD = """
import itertools
import torch
from torch import nn
from torch.profiler import profile, schedule
from torch.utils.data import DataLoader

model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader([torch.randn(8)] * 1000, batch_size=4)
"""

FIRES = {
    "over a loader": """
with profile() as prof:  # <-
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
""",
    "over epochs of a loader": """
with torch.profiler.profile(with_stack=True):  # <-
    for epoch in range(10):
        for x in loader:
            model(x).sum().backward()
            optimizer.step()
""",
    "many steps": """
def train(num_steps):
    with profile() as prof:  # <-
        for step in range(num_steps):
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
""",
}

SILENT = {
    "a schedule": """
with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        prof.step()
""",
    "arguments from elsewhere": """
with profile(**options) as prof:
    for x in loader:
        model(x)
""",
    "one step": """
with profile() as prof:
    model(torch.randn(4, 8)).sum().backward()
""",
    "ten steps": """
with profile() as prof:
    for _ in range(10):
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
""",
    "the loop ends early": """
with profile() as prof:
    for i, x in enumerate(loader):
        model(x)
        if i == 5:
            break
""",
    "a part of the loader": """
with profile() as prof:
    for x in itertools.islice(loader, 5):
        model(x)
""",
    "within the loop": """
for x in loader:
    with profile() as prof:
        model(x)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_profiler(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR004", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR004", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR004")


def test_a_schedule_records_a_part_of_the_events(
    run: Callable[..., dict[str, Any]], tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = []
    for heading in ("Example", "Use instead"):
        model = torch.nn.Linear(4, 4)
        batches = [(torch.randn(2, 4), torch.randn(2, 4))] * 60
        run("PYR004", heading)["train"](model, batches, torch.optim.SGD(model.parameters(), lr=0.1))
        sizes.append((tmp_path / "trace.json").stat().st_size)
    assert sizes[0] > 5 * sizes[1]
