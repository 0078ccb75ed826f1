"""PYR519: weights that are computed anew in inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.source.module import Module
from pyrometer.trace.reporting.rank_report import report_rank

CODE = "PYR519"
SOURCE = """
from torch import nn
from torch.nn.utils.parametrizations import orthogonal


def build():
    return nn.Sequential(orthogonal(nn.Linear(8, 8)), nn.ReLU())
"""


def traced(builder: Any, path: str, *, trains: bool = False) -> Case:
    for i in range(3):
        start = i * 1000.0
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.annotate("module:0", start + 10, 900)
        builder.annotate(f"module:{path}", start + 20, 600)
        builder.op("aten::linalg_solve", start + 30, 500)
        builder.op("aten::addmm", start + 700, 100)
        if trains:
            builder.op("AddmmBackward0", start + 910, 50)
    modules = (Module.parse("model.py", SOURCE),)
    return Case(target="test", trace=report_rank(builder.read()), modules=modules)


def test_what_weights_take_is_told_where_they_are_registered(
    builder: Any, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, traced(builder, "0.parametrizations.weight"))
    assert finding.where.line == 7
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5, abs=0.12)
    assert "remove_parametrizations" in finding.advice.title


def test_other_modules_are_left_alone(builder: Any, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, traced(builder, "0.parameters.weight")) == []


def test_training_needs_its_parametrisations(builder: Any, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, traced(builder, "0.parametrizations.weight", trains=True)) == []


def test_the_advice_leaves_the_weight_and_takes_its_computation(run: Callable[..., dict[str, Any]]) -> None:
    x = torch.randn(3, 64)
    torch.manual_seed(0)
    before = run(CODE, "Example", torch=torch, x=x)
    torch.manual_seed(0)
    after = run(CODE, "Use instead", torch=torch, x=x)
    assert isinstance(after["layer"], nn.Linear)
    assert parametrize.is_parametrized(before["layer"])
    assert not parametrize.is_parametrized(after["layer"])
    torch.testing.assert_close(before["y"], after["y"])
