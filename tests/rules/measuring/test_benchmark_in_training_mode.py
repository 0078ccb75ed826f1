"""PYR012: inference timed with gradients recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.match import Match

HEAD = """
import time
import torch
from torch import nn

x = torch.randn(4, 8)
"""

FIRES = {
    "neither": """
model = nn.Linear(8, 8)
model(x)
start = time.time()
model(x)  # <-
took = time.time() - start
""",
    "in evaluation mode, with gradients": """
def bench():
    model = nn.Linear(8, 8).eval()
    start = time.time()
    for _ in range(100):
        model(x)  # <-
    return time.time() - start
""",
}

SILENT = {
    "inference mode": """
model = nn.Linear(8, 8).eval()
with torch.inference_mode():
    start = time.time()
    model(x)
    took = time.time() - start
""",
    "no_grad around the call": """
model = nn.Linear(8, 8).eval()
start = time.time()
with torch.no_grad():
    model(x)
took = time.time() - start
""",
    "a decorator": """
@torch.no_grad()
def bench():
    model = nn.Linear(8, 8).eval()
    start = time.time()
    model(x)
    return time.time() - start
""",
    "a training": """
model = nn.Linear(8, 8)
start = time.time()
loss = model(x).sum()
took = time.time() - start
loss.backward()
""",
    "the caller decides": """
def bench(model: nn.Module):
    start = time.time()
    model(x)
    return time.time() - start
""",
    "switched off for all": """
torch.set_grad_enabled(False)
model = nn.Linear(8, 8)
start = time.time()
model(x)
took = time.time() - start
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_call(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR012", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR012", HEAD + text) == []


def test_says_which_of_both_is_missing(matches: Callable[..., list[Match]]) -> None:
    (neither,) = matches("PYR012", HEAD + FIRES["neither"])
    (gradients,) = matches("PYR012", HEAD + FIRES["in evaluation mode, with gradients"])
    assert "never put into evaluation mode" in neither.message
    assert "evaluation mode" not in gradients.message


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR012")


def test_the_replacement_records_nothing(run: Callable[..., dict[str, Any]]) -> None:
    names = run("PYR012", "Example")
    assert names["model"].training
    assert names["model"](names["x"]).requires_grad
    names = run("PYR012", "Use instead")
    assert not names["model"].training
    with torch.inference_mode():
        assert not names["model"](names["x"]).requires_grad
