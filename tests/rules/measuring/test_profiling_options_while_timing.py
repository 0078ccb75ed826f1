"""PYR005: timing under a profiler that records in detail."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

HEAD = """
import time
import torch
from torch import nn
from torch.profiler import profile

model = nn.Linear(8, 8)
x = torch.randn(4, 8)
"""

FIRES = {
    "timed within": """
with profile(with_stack=True) as prof:  # <-
    start = time.time()
    model(x)
    print(time.time() - start)
""",
    "timed around": """
start = time.time()
with profile(record_shapes=True, profile_memory=True) as prof:  # <-
    model(x)
print(time.time() - start)
""",
}

SILENT = {
    "no options": """
with profile() as prof:
    start = time.time()
    model(x)
    print(time.time() - start)
""",
    "options off": """
with profile(with_stack=False) as prof:
    start = time.time()
    model(x)
    print(time.time() - start)
""",
    "timed elsewhere": """
with profile(with_stack=True) as prof:
    model(x)
start = time.time()
model(x)
print(time.time() - start)
""",
    "the profiler itself is timed, without computing": """
start = time.time()
path = "trace.json"
took = time.time() - start
with profile(with_stack=True) as prof:
    model(x)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_profiler(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR005", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR005", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR005")


def test_the_replacement_reads_the_clock_outside_of_the_profiler(
    run: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    now = time.perf_counter
    monkeypatch.setattr(
        time, "perf_counter", lambda: (seen.append(torch.autograd._profiler_enabled()), now())[1]
    )
    run("PYR005", "Example")
    assert True in seen
    seen.clear()
    run("PYR005", "Use instead")
    assert seen
    assert True not in seen
