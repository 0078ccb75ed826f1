"""A dispatch mode that imports no compiler, and is left alone by one that is there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from pyrometer.workload.whereabouts.dispatch import DispatchMode


class Counting(DispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def test_every_operator_is_seen() -> None:
    with Counting() as mode:
        torch.ones(3) + 1
    assert mode.names == ["aten::ones", "aten::add.Tensor"]


def test_with_a_compiler_at_hand_too() -> None:
    import torch._dynamo

    with Counting() as mode:
        assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist() == [2.0, 2.0]
    assert "aten::add.Tensor" in mode.names


@pytest.mark.slow
def test_neither_it_nor_a_profiler_imports_the_compiler() -> None:
    code = """
import sys, torch
from pyrometer.workload.script.startup._pyrometer_inside.kineto import new_profiler
from pyrometer.workload.whereabouts.dispatch import DispatchMode

class Seeing(DispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

profiler, _ = new_profiler(torch, {})
profiler.start()
with Seeing():
    torch.ones(2) + 1
profiler.stop()
assert "torch._dynamo" not in sys.modules
assert torch._inductor.__name__ == "torch._inductor", "it is imported where it is asked for"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
