"""A dispatch mode that imports no compiler, and is left alone by one that is there."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.fixture
def graphs() -> Iterator[list[Any]]:
    """What Dynamo compiles in a test, by a compiler that takes graphs as they are."""
    import torch._dynamo

    yield []
    torch._dynamo.reset()


def compiled(graphs: list[Any]) -> Any:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.abs()
        if y.sum() > 0:
            y = y * 2
        return y

    def compiler(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    return torch.compile(function, backend=compiler, dynamic=False)


def test_what_ran_below_one_first_is_compiled_later(graphs: list[Any]) -> None:
    function = compiled(graphs)
    with Counting() as mode, mode:
        function(torch.ones(2))
    assert (len(graphs), "aten::abs" in mode.names) == (0, True)
    function(torch.ones(2))
    assert len(graphs) == 2


def test_what_was_compiled_before_one_is_compiled_anew_for_other_inputs(graphs: list[Any]) -> None:
    function = compiled(graphs)
    function(torch.ones(2))
    with pytest.raises(ZeroDivisionError), Counting():
        raise ZeroDivisionError(function(torch.ones(2)))
    function(torch.ones(3))
    assert len(graphs) == 4


def test_modes_may_end_in_another_order_than_they_began(graphs: list[Any]) -> None:
    function = compiled(graphs)
    first, second = Counting(), Counting()
    first.__enter__()
    with contextlib.ExitStack() as stack:
        stack.callback(second.__exit__, None, None, None)
        second.__enter__()
        first.__exit__(None, None, None)
        function(torch.ones(2))
        assert graphs == []
    function(torch.ones(2))
    assert len(graphs) == 2


def test_a_mode_between_two_graphs_is_not_compiled(graphs: list[Any]) -> None:
    from torch._dynamo.utils import counters

    counters.clear()

    @torch._dynamo.disable(recursive=False)
    def between(x: torch.Tensor) -> list[str]:
        with Counting() as mode:
            x.sin().cos().tan().exp()
        return mode.names

    def function(x: torch.Tensor) -> list[str]:
        return between(x * 2)

    compile_anew = torch.compile(
        function, backend=lambda graph, _inputs: graphs.append(graph) or graph.forward
    )
    assert compile_anew(torch.ones(2)) == ["aten::sin", "aten::cos", "aten::tan", "aten::exp"]
    assert len(graphs) == 1


@pytest.mark.exhaustive
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
