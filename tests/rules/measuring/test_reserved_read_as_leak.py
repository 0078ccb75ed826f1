"""PYR008: reserved memory read as memory in use."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

HEAD = "import os, subprocess, torch\nfrom torch.cuda import memory_reserved\n"

FIRES = {
    "asserted": """
before = torch.cuda.memory_reserved()
step()
assert torch.cuda.memory_reserved() == before  # <-
""",
    "with a margin": """
before = memory_reserved(0)
step()
after = memory_reserved(0)
if after > before + 2**20:  # <-
    raise RuntimeError("leak")
""",
    "subtracted": """
before = torch.cuda.max_memory_reserved()
step()
grown = (torch.cuda.max_memory_reserved() - before) / 2**20  # <-
""",
    "by nvidia-smi": """
def test_no_leak():
    out = subprocess.check_output(["nvidia-smi", "--query-gpu=memory.used", "--format=csv"])  # <-
""",
}

SILENT = {
    "allocated": """
before = torch.cuda.memory_allocated()
step()
assert torch.cuda.memory_allocated() == before
""",
    "against a limit": """
if torch.cuda.memory_reserved() > 0.9 * torch.cuda.get_device_properties(0).total_memory:
    torch.cuda.empty_cache()
""",
    "fragmentation": """
unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
""",
    "the emptiest device": """
def pick_gpu():
    return subprocess.check_output(["nvidia-smi", "--query-gpu=memory.free", "--format=csv"])
""",
    "printed": "print(torch.cuda.memory_reserved())\n",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_where_readings_meet(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR008", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR008", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR008")


def test_a_pool_that_grows_is_no_leak(
    run: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = itertools.count(100, 100)  # what the allocator keeps when every tensor has died
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: next(pool))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 10)
    with pytest.raises(AssertionError):
        run("PYR008", "Example")["check"](lambda: None)
    run("PYR008", "Use instead")["check"](lambda: None)
