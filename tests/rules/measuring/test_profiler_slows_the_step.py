"""PYR011: the profiler's own share of a traced step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.trace.capture.record import Capture, CaptureOptions


@pytest.fixture
def report(builder: Any) -> Any:
    from pyrometer.trace.reporting.rank_report import report_rank

    for i in range(50):
        builder.op("aten::add", i * 10, 8)
    return report_rank(builder.read())


@pytest.fixture
def long_report(tmp_path: Any, trace_tests: Any) -> Any:
    """Of a trace whose operators are far longer than what the profiler adds to each."""
    from pyrometer.trace.reporting.rank_report import report_rank

    builder = trace_tests.TraceBuilder(tmp_path)
    for i in range(5):
        builder.op("aten::mm", i * 10_000, 9_990)
    return report_rank(builder.read())


def captured(ratio: float | None, **options: bool) -> Capture:
    return Capture(
        source="workload",
        options=CaptureOptions(**options),
        asked_steps=2,
        num_steps=2,
        step_untraced_s=0.01,
        step_traced_s=None if ratio is None else 0.01 * ratio,
        overhead_ratio=ratio,
        overhead_low=None if ratio is None else ratio * 0.9,
        overhead_high=None if ratio is None else ratio * 1.1,
        raw_bytes=1000,
        file_bytes=100,
        num_events=10,
    )


def test_a_light_capture_is_left_alone(findings: Callable[..., list[Finding]], report: Any) -> None:
    for ratio in (None, 1.0, 1.3):
        assert findings("PYR011", Case(target="a", trace=report, capture=captured(ratio))) == []


def test_a_trace_from_elsewhere_is_left_alone(findings: Callable[..., list[Finding]], report: Any) -> None:
    assert findings("PYR011", Case(target="a", trace=report)) == []


def test_a_heavy_capture_is_told_with_its_dearest_option(
    findings: Callable[..., list[Finding]], report: Any
) -> None:
    capture = captured(2.0, with_stack=True, profile_memory=True)
    (finding,) = findings("PYR011", Case(target="a", trace=report, capture=capture))
    assert (finding.severity, finding.confidence) == ("info", "high")
    assert "2.00× as long (1.80–2.20)" in finding.message
    assert "50 %" in finding.message
    assert "without with_stack" in finding.advice.text


def test_a_step_of_long_operators_was_slowed_by_something_else(
    findings: Callable[..., list[Finding]], long_report: Any
) -> None:
    assert findings("PYR011", Case(target="a", trace=long_report, capture=captured(13.0))) == []


def test_a_ratio_that_may_be_one_is_left_alone(findings: Callable[..., list[Finding]], report: Any) -> None:
    unsure = msgspec.structs.replace(captured(1.9), overhead_low=0.8, overhead_high=5.3)
    assert findings("PYR011", Case(target="a", trace=report, capture=unsure)) == []


def test_a_traced_step_as_long_as_the_measured_one_was_not_slowed(
    findings: Callable[..., list[Finding]], report: Any, measured: Callable[..., Any]
) -> None:
    capture = captured(4.0)  # of untraced steps of 10 ms
    slow, fast = measured(median_s=0.039), measured(median_s=0.011)
    assert findings("PYR011", Case(target="a", trace=report, capture=capture, measurement=slow)) == []
    assert findings("PYR011", Case(target="a", trace=report, capture=capture, measurement=fast))


def test_without_the_dearest_option_a_trace_has_fewer_events() -> None:
    import pyrometer as pm
    from pyrometer.trace.capture.workload import record_trace

    work = pm.Inference(
        torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(20)]), (torch.randn(2, 4),)
    )
    events = []
    for with_stack in (True, False):
        trace = record_trace(work, steps=2, options=CaptureOptions(with_stack=with_stack, with_modules=False))
        events.append(trace.ranks[0].events.height)
    assert events[0] > 2 * events[1]
