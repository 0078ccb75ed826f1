"""PYR118: pauses of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer import Inference
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR118"


def pausing(builder: Any, pause_us: float, name: str = "Python GC") -> Any:
    """Steps of 1 ms in which the host collects garbage between two launches."""
    for i in range(3):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(4): step", start, 995)
        builder.op("aten::mm", start + 5, 20)
        builder.launch("gemm", start + 7, start + 15, 300)
        builder.python(name, start + 320, pause_us)
        builder.op("aten::mm", start + 600, 20)
        builder.launch("gemm", start + 602, start + 610, 385)
    return builder


def test_idle_time_in_the_collector_is_told(builder: Any, evidence_of: Any, only: Any) -> None:
    finding = only(CODE, evidence_of(pausing(builder, 270)))
    assert finding.cost.share == pytest.approx(3 * 270 / 2990, rel=0.05)
    assert "gc.freeze()" in finding.advice.rewrite
    assert finding.evidence["num_long_pauses"] == 3


def test_a_call_of_the_program_s_own_is_told_with_its_place(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    finding = only(CODE, evidence_of(pausing(builder, 270, "<built-in function collect>")))
    assert (finding.where.file, finding.where.line) == ("train.py", 4)
    assert finding.advice.rewrite is None


def test_short_pauses_are_not_worth_a_word(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(pausing(builder, 5))) == []


@pytest.mark.parametrize("name", ["tiny_ops", "slow_loader"])
def test_programs_without_such_pauses_are_left_alone(
    traced: Any, findings: Callable[..., list[Finding]], name: str
) -> None:
    assert findings(CODE, traced(name, "fixed")) == []


def test_frozen_objects_are_out_of_the_collector_s_sight() -> None:
    was_on, kept = gc.isenabled(), [{"number": i} for i in range(2000)]
    try:
        gc.collect()
        seen = len(gc.get_objects())
        gc.freeze()
        gc.disable()
        assert len(gc.get_objects()) < seen / 10
        assert len(kept) == 2000
    finally:
        gc.unfreeze()
        gc.freeze()  # as the tests of a file begin
        if was_on:
            gc.enable()


HEAP = 500_000
"""Objects of a small program."""


class Collecting(torch.nn.Module):
    """Collects garbage in every forward, as some programs do against leaks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(x)
        gc.collect()
        return self.layer(hidden)


def test_a_real_program_that_collects_in_every_step_is_found(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    _heap = [[] for _ in range(HEAP)]  # or there is little to look through
    work = Inference(Collecting(), (torch.randn(4, 8),))
    (finding,) = findings(CODE, observe(work, "trace"))
    assert finding.cost.share > 0.5
    assert finding.advice.rewrite is None
