"""Operators on numbers next to zero."""

from __future__ import annotations

from collections.abc import Callable

import torch

from pyrometer.dataflow.analyses.subnormal import subnormal
from pyrometer.dataflow.graph import FlowGraph

Flow = Callable[..., FlowGraph]


class Trace:
    """A state that decays, far on its way."""

    def __init__(self, start: float) -> None:
        self.state = torch.full((64, 64), start)

    def __call__(self) -> torch.Tensor:
        self.state = self.state * 0.999  # <-
        return self.state + 1


def test_a_state_that_has_decayed_is_found_at_its_line(flow: Flow) -> None:
    (decay, read) = sorted(subnormal(flow(Trace(1e-39))), key=lambda fact: fact.where.line or 0)
    assert decay.where.line == Trace.__call__.__code__.co_firstlineno + 1
    assert decay.operators == ["aten::mul"]
    assert decay.subnormal_share == 1.0
    assert read.operators == ["aten::add"]


def test_normal_numbers_and_zeros_are_left_alone(flow: Flow) -> None:
    assert subnormal(flow(Trace(1.0))) == []
    assert subnormal(flow(Trace(0.0))) == []
