"""PYR003: one run quoted as the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

HEAD = """
import time
import torch
from torch import nn

model = nn.Linear(8, 8)
x = torch.randn(4, 8)
"""

FIRES = {
    "printed": """
start = time.time()
model(x)
print("took", time.time() - start)  # <-
""",
    "printed by its name": """
start = time.time()
model(x)
took = time.time() - start  # <-
print(f"inference took {took:.3f} s")
""",
    "logged": """
import logging
start = time.time()
model(x)
logging.info("took %s", time.time() - start)  # <-
""",
}

SILENT = {
    "repeated within": """
start = time.time()
for _ in range(100):
    model(x)
print((time.time() - start) / 100)
""",
    "repeated around": """
for _ in range(100):
    start = time.time()
    model(x)
    print(time.time() - start)
""",
    "repeated by the caller": """
def once():
    start = time.time()
    model(x)
    print(time.time() - start)

for _ in range(10):
    once()
""",
    "the caller gets it": """
def once():
    start = time.time()
    model(x)
    return time.time() - start
""",
    "no model": """
start = time.time()
text = open("a.txt").read()
print(time.time() - start)
""",
    "a training": """
start = time.time()
model(x).sum().backward()
print(time.time() - start)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_difference(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR003", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR003", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR003")


def test_the_replacement_shows_the_spread(
    run: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    times = run("PYR003", "Use instead")["times"]
    assert len(times) == 100
    assert "worst" in capsys.readouterr().out
