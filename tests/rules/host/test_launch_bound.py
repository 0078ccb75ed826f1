"""PYR110: a device that waits for launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR110"


def launching(builder: Any, kernel_us: float, every_us: float, *, steps: int = 3, kernels: int = 20) -> Any:
    """Steps in which the host launches a kernel every so often, each when it is time."""
    length = kernels * every_us
    for i in range(steps):
        builder.annotate(f"ProfilerStep#{i}", i * length, length)
        for k in range(kernels):
            at = i * length + k * every_us
            builder.op("aten::add", at, every_us - 1)
            builder.launch("add_kernel", at + every_us - 8, at + every_us - 2, kernel_us)
    return builder


def test_short_kernels_far_apart_leave_the_device_waiting(builder: Any, evidence_of: Any, only: Any) -> None:
    finding = only(CODE, evidence_of(launching(builder, kernel_us=4, every_us=20)))
    assert finding.cost.share == pytest.approx(16 / 20, abs=0.03)
    assert finding.advice.gain.ratio_low == pytest.approx(1 - finding.cost.share)
    assert finding.advice.lever == "cuda_graphs"
    assert finding.confidence == "medium"  # the length of an untraced step is not known
    assert "reduce-overhead" in finding.advice.sketch


def test_long_kernels_are_another_matter(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(launching(builder, kernel_us=15, every_us=20))) == []
    assert findings(CODE, evidence_of(launching(builder, kernel_us=40, every_us=200))) == []


def mixed(builder: Any, *, wait_after_short: bool) -> Any:
    """Steps of ten short kernels that are queued in time and one long one; the host is late after one or the other."""
    for i in range(12):
        start = i * 400
        builder.annotate(f"ProfilerStep#{i}", start, 400)
        for k in range(10):
            builder.op("aten::add", start + k * 6, 5)
            builder.launch("add_kernel", start + k * 6 + 1, start + 30 + k * 6, 5.5, call_us=2)
        late = 200 if wait_after_short else 75
        builder.op("aten::mm", start + 62, late - 62 + 10)
        builder.launch("gemm", start + late, start + late + 15, 60)
        if wait_after_short:
            builder.op("aten::add", start + late + 15, 30)
            builder.launch("fill", start + late + 20, start + late + 75.5, 110, call_us=2)
    return builder


def test_it_is_after_short_kernels_that_waiting_is_told(builder: Any, evidence_of: Any, only: Any) -> None:
    finding = only(CODE, evidence_of(mixed(builder, wait_after_short=True)))
    assert 0.5 < finding.evidence["after_short_share"] < 1
    assert finding.cost.share < finding.evidence["waiting_share"]
    assert finding.cost.share == pytest.approx(
        finding.evidence["waiting_share"] * finding.evidence["after_short_share"]
    )


def test_many_short_kernels_do_not_make_waiting_after_a_long_one_a_matter_of_launches(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    evidence = evidence_of(mixed(builder, wait_after_short=False))
    launches = evidence.trace.launches.device
    assert launches.num_short > 0.9 * evidence.trace.num_kernels
    assert findings(CODE, evidence) == []
    assert len(findings("PYR116", evidence)) == 1


def test_kernels_that_are_queued_in_time_wait_for_nobody(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    builder.annotate("ProfilerStep#0", 0, 500)
    for k in range(60):
        builder.op("aten::add", k * 5, 4)
        builder.launch("add_kernel", k * 5 + 1, 20 + k * 8, 8, call_us=2)
    assert findings(CODE, evidence_of(builder)) == []


def test_what_only_the_profiler_slows_does_not_count(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]], untraced: Callable[..., Any]
) -> None:
    evidence = evidence_of(launching(builder, kernel_us=4, every_us=20), capture=untraced(83e-6))
    assert findings(CODE, evidence) == []  # 20 kernels of 4 µs fill a step of 83 µs


def test_the_length_of_an_untraced_step_makes_it_certain(
    builder: Any, evidence_of: Any, only: Any, untraced: Callable[..., Any]
) -> None:
    evidence = evidence_of(launching(builder, kernel_us=4, every_us=20), capture=untraced(160e-6))
    finding = only(CODE, evidence)
    assert finding.cost.share == pytest.approx(0.5)
    assert finding.confidence == "high"


def test_the_limit_can_be_set(builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]) -> None:
    evidence = evidence_of(launching(builder, kernel_us=4, every_us=20), limits={"PYR110.min_share": 0.95})
    assert findings(CODE, evidence) == []


@pytest.mark.parametrize("name", ["tiny_ops", "memory_churn"])
def test_programs_without_a_device_have_no_launches(
    traced: Callable[[str, str], Case], findings: Callable[..., list[Finding]], name: str
) -> None:
    assert findings(CODE, traced(name, "workload")) == []


def test_one_graph_for_all_kernels_takes_the_waiting_away(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i}", i * 100, 100)
        correlation = builder.call("cudaGraphLaunch", i * 100, 6)
        for k in range(20):
            builder.device(
                "kernel", "add_kernel", i * 100 + 8 + k * 4.5, 4, correlation=correlation, **{"graph id": 1}
            )
    assert findings(CODE, evidence_of(builder)) == []
