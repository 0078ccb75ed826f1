"""PYR535: pieces of a tensor whose gradients are each as large as the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.workload.training import Training

CODE = "PYR535"


class Reader(nn.Module):
    """Reads a sequence step by step, in one of two ways."""

    def __init__(self, *, at_once: bool) -> None:
        super().__init__()
        self.embed, self.at_once = nn.Linear(4, 64), at_once

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, state = self.embed(x), x.new_zeros(x.shape[0], 64)
        if self.at_once:
            for part in x.unbind(1):
                state = torch.tanh(state + part)
            return state
        for t in range(x.shape[1]):
            state = torch.tanh(state + x[:, t])
        return state


def training(*, at_once: bool, length: int = 200) -> Training:
    model = Reader(at_once=at_once)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = (torch.rand(16, length, 4), torch.zeros(16, 64))
    return Training(model, nn.functional.mse_loss, optimizer, [batch])


@pytest.fixture(scope="module")
def one_by_one(observe: Callable[..., Case]) -> Case:
    return observe(training(at_once=False), "trace", sources=[Path(__file__)])


def test_the_line_that_takes_pieces_one_by_one_is_told(
    one_by_one: Case, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, one_by_one)
    assert finding.cost is not None
    assert (finding.cost.share or 0) > 0.2
    assert (finding.evidence["pieces_per_step"], finding.evidence["pieces"]) == (200, "x[:, t]")
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert "x[:, t]" in lines[(finding.where.line or 0) - 1]
    assert "unbind" in finding.advice.title


def test_its_advice_leaves_nothing_to_tell(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, observe(training(at_once=True), "trace", sources=[Path(__file__)])) == []


def test_a_few_pieces_are_no_finding(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    few = training(at_once=False, length=4)
    assert findings(CODE, observe(few, "trace", sources=[Path(__file__)])) == []


def test_its_advice_gives_the_same_gradients() -> None:
    x = torch.rand(2, 5, 4)
    results: list[Any] = []
    for at_once in (False, True):
        torch.manual_seed(0)
        model = Reader(at_once=at_once)
        model(x).sum().backward()
        results.append(model.embed.weight.grad)
    torch.testing.assert_close(*results)
