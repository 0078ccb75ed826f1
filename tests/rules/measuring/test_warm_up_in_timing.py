"""PYR002: first calls timed as if they were typical."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

HEAD = """
import time
import torch
from torch import nn

x = torch.randn(4, 8)
"""

FIRES = {
    "compiled": """
model = torch.compile(nn.Linear(8, 8))
start = time.perf_counter()  # <-
for _ in range(100):
    model(x)
print(time.perf_counter() - start)
""",
    "compiled and stored": """
def run(net: nn.Module):
    fast = torch.compile(net)
    start = time.perf_counter()  # <-
    fast(x)
    return time.perf_counter() - start
""",
    "eager and printed": """
model = nn.Linear(8, 8).eval()
start = time.perf_counter()  # <-
for _ in range(100):
    model(x)
took = time.perf_counter() - start
print(took / 100)
""",
    "the model was only moved": """
model = nn.Linear(8, 8)
model.to("cpu")
model.eval()
start = time.perf_counter()  # <-
model(x)
print(time.perf_counter() - start)
""",
}

SILENT = {
    "warmed up by a loop": """
model = torch.compile(nn.Linear(8, 8))
for _ in range(5):
    model(x)
start = time.perf_counter()
model(x)
print(time.perf_counter() - start)
""",
    "warmed up by a function": """
model = torch.compile(nn.Linear(8, 8))
warm_up(model, x)
start = time.perf_counter()
model(x)
print(time.perf_counter() - start)
""",
    "the caller may have warmed it up": """
def run(model: nn.Module):
    start = time.perf_counter()
    model(x)
    print(time.perf_counter() - start)
""",
    "a training from its beginning": """
model = nn.Linear(8, 8)
start = time.perf_counter()
for _ in range(100):
    model(x).sum().backward()
print(time.perf_counter() - start)
""",
    "rounds of a loop": """
model = nn.Linear(8, 8)
times = []
for _ in range(100):
    start = time.perf_counter()
    model(x)
    times.append(time.perf_counter() - start)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_where_the_clock_starts(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR002", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR002", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR002")


@pytest.mark.parametrize(
    ("heading", "order"),
    [("Example", ["clock", "compilation", "clock"]), ("Use instead", ["compilation", "clock", "clock"])],
)
def test_the_replacement_compiles_before_the_clock_starts(
    heading: str, order: list[str], run: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch._dynamo.reset()
    seen: list[str] = []
    compiled = torch.compile

    def backend(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        seen.append("compilation")
        return graph

    def clock() -> float:
        if sys._getframe(1).f_globals.get("timed"):
            seen.append("clock")
        return 0.0

    monkeypatch.setattr(torch, "compile", lambda model: compiled(model, backend=backend))
    monkeypatch.setattr(time, "perf_counter", clock)
    run("PYR002", heading, timed=True)
    torch._dynamo.reset()
    assert seen == order
