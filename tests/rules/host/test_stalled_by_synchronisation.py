"""PYR108: waits that nothing else explains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.finding import Finding

CODE = "PYR108"
OTHERS = [f"PYR10{digit}" for digit in range(1, 8)]


def test_a_wait_without_a_known_operator_is_told(
    builder: Any, stalling: Any, evidence_of: Any, only: Any, findings: Callable[..., list[Finding]]
) -> None:
    evidence = evidence_of(stalling(builder, "mylib::gather_results", copy=None))
    finding = only(CODE, evidence)
    assert finding.cost.share == pytest.approx(2 * 700 / 3000)
    assert "set_sync_debug_mode" in finding.advice.text
    assert finding.links == ["/trace/sync_points/0"]
    assert all(findings(code, evidence) == [] for code in OTHERS)


def test_a_wait_of_the_allocator_is_told_as_such(
    builder: Any, stalling: Any, evidence_of: Any, only: Any
) -> None:
    finding = only(CODE, evidence_of(stalling(builder, "aten::empty", copy=None, call="cudaFree")))
    assert "expandable_segments" in finding.advice.text


@pytest.mark.parametrize("op", ["aten::item", "aten::is_nonzero", "aten::nonzero", "aten::index", "aten::to"])
def test_what_another_rule_explains_is_not_told_twice(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]], op: str
) -> None:
    evidence = evidence_of(stalling(builder, op))
    assert findings(CODE, evidence) == []
    assert sum(len(findings(code, evidence)) for code in OTHERS) == 1


def test_waits_that_cost_nothing_are_left_out(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    busy = stalling(builder, "mylib::gather_results", copy=None)
    for i in range(3):
        busy.launch("other", i * 1000 + 5, i * 1000 + 15, 990, stream=8)
    assert findings(CODE, evidence_of(busy)) == []


def test_a_program_without_a_device_has_no_stalls(
    traced: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, traced("item_each_step", "workload")) == []


def test_taking_the_wait_away_takes_the_finding_away(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(stalling(builder, "mylib::gather_results", wait=False))) == []


def test_one_function_that_runs_in_many_modules_is_told_once(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    for i in range(30):
        start = i * 100
        builder.python("net.py(3): forward", start + 1, 98)
        builder.python(f"nn.Module: Block_{i}", start + 2, 96)
        builder.op("mylib::gather", start + 5, 50)
        builder.launch("gather_kernel", start + 6, start + 12, 40)
        builder.call("cudaStreamSynchronize", start + 15, 38)
    finding = only(CODE, evidence_of(builder))
    assert finding.evidence["calls_per_step"] == 30
    assert len(finding.links) == 5


def test_a_copy_whose_direction_is_not_known_is_told_by_the_source(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    stalling(builder, "aten::to", copy="Memcpy (kind 8)", frame="train.py(1): step")
    assert len(findings(CODE, evidence_of(builder))) == 1
    evidence = evidence_of(builder, "train.py", "def step(x):\n    return float(x.cpu().mean())\n")
    assert findings(CODE, evidence) == []
    assert [finding.where.line for finding in findings("PYR102", evidence)] == [2]
