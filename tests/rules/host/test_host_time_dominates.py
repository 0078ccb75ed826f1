"""PYR116: a host that is busy between long kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.finding import Finding

CODE = "PYR116"


def working(builder: Any, *, kernel_us: float, python_us: float, kernels: int = 6) -> Any:
    """Three steps: before each launch the host works in Python, and the kernel starts when it is launched."""
    each = python_us + 30
    for i in range(3):
        start = i * kernels * each
        builder.annotate(f"ProfilerStep#{i}", start, kernels * each)
        builder.python("train.py(4): step", start, kernels * each - 1)
        for k in range(kernels):
            at = start + k * each
            builder.python("sampling.py(9): priorities", at + 1, python_us)
            builder.op("aten::mm", at + python_us + 2, 20)
            builder.launch("gemm", at + python_us + 3, at + python_us + 10, kernel_us)
    return builder


def test_python_between_long_kernels_is_told_with_its_place(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    finding = only(CODE, evidence_of(working(builder, kernel_us=60, python_us=120)))
    assert finding.cost.share == pytest.approx(90 / 150, abs=0.05)
    assert (finding.where.file, finding.where.function) == ("sampling.py", "priorities")
    assert any("priorities" in str(one) for one in finding.evidence["host_meanwhile"])
    assert finding.resource == "launch"
    assert finding.advice.text.startswith("Move what the host does between launches out of the step")
    assert finding.advice.code is None


def test_where_the_host_only_issues_operators_compiling_is_advised(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    for step in range(2):
        builder.annotate(f"ProfilerStep#{step}", step * 1_500, 1_500)
        for k in range(step * 10, step * 10 + 10):
            builder.op("aten::cudnn_convolution", k * 150, 145)
            builder.launch("conv", k * 150 + 130, k * 150 + 140, 60)
    finding = only(CODE, evidence_of(builder))
    assert finding.evidence["host_meanwhile"][0] == "aten::cudnn_convolution"
    assert finding.cost.share == pytest.approx(90 / 150, abs=0.05)
    assert finding.advice.sketch == "model = torch.compile(model)"
    assert finding.advice.lever == "compile"


def test_a_busy_device_is_told_nothing(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(working(builder, kernel_us=145, python_us=120))) == []


def test_short_kernels_are_the_matter_of_another_rule(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    evidence = evidence_of(working(builder, kernel_us=5, python_us=120))
    assert findings(CODE, evidence) == []
    assert len(findings("PYR110", evidence)) == 1


def test_a_program_without_a_device_is_all_host_and_no_fault(
    traced: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, traced("memory_churn", "workload")) == []


def test_the_time_goes_when_the_python_goes(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(working(builder, kernel_us=35, python_us=10))) == []
