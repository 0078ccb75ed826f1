"""PYR132: one graph that is differentiated in each round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR132"
Sampled = Callable[..., Case]

SOURCE = """
import torch


def trace_of(y, x):
    total = 0
    for axis in range(12):
        (slope,) = torch.autograd.grad(y[:, axis].sum(), x, retain_graph=True)
        total = total + slope[:, axis]
    return total
"""
SPENT = {"backward torch.autograd.grad": 0.7, "operator []": 0.1}


def test_a_pass_per_dimension_is_told_at_the_loop(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(CODE, sampled(SOURCE, {8: SPENT}, loops={7: (12.0, SPENT)}))
    gain = finding.advice.gain
    assert finding.where.line == 7
    assert "12 times" in finding.message
    assert gain is not None
    assert 0.1 < (gain.ratio_low or 0) < (gain.ratio_high or 0) < 0.6


@pytest.mark.parametrize(
    ("source", "rounds"),
    [
        (SOURCE.replace(", retain_graph=True", ""), 12.0),
        (SOURCE.replace("retain_graph=True", "retain_graph=False"), 12.0),
        (SOURCE, 2.0),
    ],
)
def test_rounds_with_graphs_of_their_own_and_few_are_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], source: str, rounds: float
) -> None:
    assert findings(CODE, sampled(source, {8: SPENT}, loops={7: (rounds, SPENT)})) == []


def test_one_batched_pass_gives_the_same(run: Callable[..., dict[str, Any]]) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 3, requires_grad=True)
    y = torch.tanh(x @ torch.randn(3, 3))
    before = run(CODE, "Example", torch=torch, x=x, y=y)
    after = run(CODE, "Use instead", torch=torch, x=x, y=y)
    torch.testing.assert_close(before["slopes"], after["slopes"])
