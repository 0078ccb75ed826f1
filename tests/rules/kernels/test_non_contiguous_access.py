"""PYR507: reading across memory, in observed steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.workload.inference import Inference

CODE = "PYR507"


class Mixed(nn.Module):
    def __init__(self, *, laid_out: bool) -> None:
        super().__init__()
        bias = torch.randn(1024, 1024).t()
        self.bias = nn.Buffer(bias.contiguous() if laid_out else bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.bias


def test_the_line_that_mixes_layouts_is_told_with_its_time(observe: Any, only: Any) -> None:
    work = Inference(Mixed(laid_out=False), torch.randn(1024, 1024))
    finding = only(CODE, observe(work, "trace", "program", sources=[Path(__file__)]))
    assert finding.where.file == __file__
    assert finding.where.line == Mixed.forward.__code__.co_firstlineno + 1
    assert finding.evidence["strides"] == "[1, 1024]"
    assert finding.severity == "warning"
    assert finding.cost.share > 0.3
    assert finding.advice.gain.ratio_high < 0.9


def test_one_layout_is_fine(observe: Any, findings: Any) -> None:
    work = Inference(Mixed(laid_out=True), torch.randn(1024, 1024))
    assert findings(CODE, observe(work, "trace", "program")) == []


def test_without_a_trace_it_is_worth_knowing(observe: Any, only: Any) -> None:
    finding = only(CODE, observe(Inference(Mixed(laid_out=False), torch.randn(1024, 1024)), "program"))
    assert (finding.severity, finding.cost) == ("info", None)


class Calls(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.t() * 2.0,  # the result has the layout of the operand
        lambda x: x @ x.t(),  # libraries take transposed operands
        lambda x: x.t().contiguous(),
        lambda x: x + x[0],  # broadcast
        lambda x: x[:, ::2] + 1.0,  # half of each line is used
        lambda x: torch.cat([x, x.t()]),
    ],
)
def test_what_is_read_along_memory_is_fine(observe: Any, findings: Any, function: Any) -> None:
    assert findings(CODE, observe(Inference(Calls(function), torch.randn(512, 512)), "program")) == []


def test_small_tensors_are_left_alone(observe: Any, findings: Any) -> None:
    work = Inference(Calls(lambda x: x + x.t()), torch.randn(64, 64))
    assert findings(CODE, observe(work, "program")) == []


def test_a_softmax_over_columns_is_told(observe: Any, only: Any) -> None:
    work = Inference(Calls(lambda x: torch.softmax(x.t(), dim=-1)), torch.randn(512, 512))
    assert only(CODE, observe(work, "program")).where.op == "aten::softmax"


def test_the_other_layout_gives_the_same_values() -> None:
    x = torch.randn(1024, 1024)
    torch.manual_seed(0)
    slow = Mixed(laid_out=False)
    torch.manual_seed(0)
    assert torch.equal(slow(x), Mixed(laid_out=True)(x))
