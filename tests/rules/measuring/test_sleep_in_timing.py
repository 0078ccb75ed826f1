"""PYR015: sleeping while the clock runs."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

HEAD = """
import time
import torch
from torch import nn

model = nn.Linear(8, 8)
x = torch.randn(4, 8)
"""

FIRES = {
    "after the call": """
start = time.time()
y = model(x)
time.sleep(1)  # <-
took = time.time() - start
""",
    "in every round": """
start = time.time()
for _ in range(10):
    y = model(x)
    time.sleep(0.01)  # <-
took = time.time() - start
""",
}

SILENT = {
    "before": """
time.sleep(1)
start = time.time()
y = model(x)
took = time.time() - start
""",
    "waiting for a condition": """
start = time.time()
y = model(x)
while not ready():
    time.sleep(0.01)
took = time.time() - start
""",
    "nothing computes": """
start = time.time()
time.sleep(1)
took = time.time() - start
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_sleep(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR015", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR015", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR015")


def test_a_sleep_is_part_of_the_time(documented: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    times = []
    for heading in ("Example", "Use instead"):
        text = documented("PYR015", heading).replace(".cuda()", "").replace(', device="cuda"', "")
        names: dict[str, float] = {}
        exec(compile(text, heading, "exec"), names)
        times.append(names["took"])
    assert times == [0.1, 0.0]
