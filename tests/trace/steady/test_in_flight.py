"""Work that was in flight when recording began or ended is no idle time; a slow start of the device alone is no such work."""

from __future__ import annotations

import pytest

from pyrometer.trace.analysis.health import health
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge
from pyrometer.trace.steady.steady import steady

MS = 1000  # the builder's microseconds


def serving(builder, *, behind_ms, kernels=100, busy_ms=4.0, base=0.0):
    """A queue that runs behind the host by a fixed time: the first kernel begins that long after its launch."""
    for i in range(kernels):
        at = base + i * busy_ms * MS
        builder.op("aten::mm", at, 100)
        builder.launch(f"gemm{i % 3}", at + 10, base + (behind_ms + i * busy_ms) * MS, busy_ms * MS - 1)
    return builder


def test_a_device_that_was_busy_when_recording_began_has_not_run_dry(builder):
    report = report_rank(serving(builder, behind_ms=493).read())
    (left,) = report.left_out
    assert (left.reason, left.span_ns) == ("in_flight_at_start", 493_000_000)
    assert left.longest_ns == 493_000_000 - 15_000
    assert left.count == 100  # the host had launched all by then
    assert report.recorded_span_ns == report.span_ns + 493_000_000
    assert report.device_busy_ns / report.span_ns > 0.999
    assert report.breakdown_ns.compute == report.device_busy_ns
    assert report.breakdown_ns.total_ns == report.span_ns
    assert report.utilisation.span_ns == report.span_ns
    assert report.idle.leading_ns == 0
    assert report.num_kernels == 100
    assert judge(report).bound == "compute"


def test_health_says_it_with_figures(builder):
    issues = {issue.code: issue for issue in health(serving(builder, behind_ms=73, kernels=20).read()).issues}
    issue = issues["in_flight_at_start"]
    assert issue.severity == "warning"
    assert "73.0 ms" in issue.message
    assert issue.share == pytest.approx(73 / 153, abs=0.01)


def test_what_if_does_not_promise_the_wait_for_unrecorded_work(builder):
    report = report_rank(serving(builder, behind_ms=200, kernels=40, busy_ms=2.0).read())
    assert all(gain.ratio > 0.9 for gain in report.recoverable if gain.kind in {"launch", "gap", "sync"})
    assert report.critical_path.total_ns == report.span_ns


def test_steps_run_when_the_device_does_them_from_the_first_recorded_work_on(builder):
    for i in range(10):
        builder.annotate(f"ProfilerStep#{i}", i * 40 * MS, 40 * MS)
    report = report_rank(serving(builder, behind_ms=119).read())
    assert [entry.reason for entry in report.left_out] == ["in_flight_at_start"]
    assert len(report.steps) == 10
    assert {round((step.end_ns - step.start_ns) / 1e6) for step in report.steps} == {40}
    assert report.steps[0].start_ns == report.origin_ns


def test_a_graph_of_many_kernels_is_one_launch_that_waits(builder):
    call = builder.call("cudaGraphLaunch", 0, 20)
    builder.op("aten::copy_", 0, 50)
    for i in range(50):
        builder.device("kernel", f"k{i % 5}", 40 * MS + i * 1000, 999, correlation=call)
    assert [entry.reason for entry in steady(builder.read()).left_out] == ["in_flight_at_start"]


def test_launches_whose_work_was_still_queued_at_the_end(builder):
    for i in range(50):
        builder.op("aten::mm", i * 2 * MS, 100)
        builder.launch("gemm", i * 2 * MS + 10, i * 2 * MS + 30, 2 * MS - 40)
    for i in range(10):  # recording ends while these are queued
        builder.op("aten::mm", (100 + i * 2) * MS, 100)
        builder.call("cudaLaunchKernel", (100 + i * 2) * MS + 10, 5)
    found = steady(builder.read())
    (left,) = found.left_out
    assert (left.reason, left.count) == ("in_flight_at_end", 10)
    assert found.trace.activity.end_ns == left.start_ns
    report = report_rank(builder.read("again.json"))
    assert report.device_busy_ns / report.span_ns > 0.97


def test_a_captured_graph_leaves_no_work_and_nothing_is_in_flight(builder):
    for i in range(50):
        builder.op("aten::mm", i * MS, 100)
        builder.launch("gemm", i * MS + 10, i * MS + 30, 500)
    builder.call("cudaStreamBeginCapture", 50 * MS, 5)
    for i in range(20):
        builder.op("aten::mm", (51 + i) * MS, 100)
        builder.call("cudaLaunchKernel", (51 + i) * MS + 10, 5)
    assert steady(builder.read()).left_out == ()


def test_a_host_that_prepares_first_leaves_the_device_idle(builder):
    builder.op("aten::sort", 0, 100 * MS)
    for i in range(50):
        builder.op("aten::mm", (100 + i) * MS, 100)
        builder.launch("gemm", (100 + i) * MS + 10, (100 + i) * MS + 30, 900)
    trace = builder.read()
    assert steady(trace).left_out == ()
    assert steady(trace).trace is trace
    assert idle(trace).leading_ns > 99_000_000


def test_a_clock_of_the_device_that_runs_late_is_no_work_in_flight(builder):
    for i in range(50):  # shallow queue: each piece ends before the next is launched
        builder.op("aten::mm", i * 10 * MS, 100)
        builder.launch("gemm", i * 10 * MS + 10, i * 10 * MS + 5 * MS, 2 * MS)
    assert steady(builder.read()).left_out == ()


def test_work_that_was_launched_before_the_record_is_told(builder):
    for i in range(5):
        builder.device("kernel", "old", i * MS, 999)
    for i in range(20):
        builder.op("aten::mm", 100 + i * MS, 100)
        builder.launch("gemm", 110 + i * MS, (5 + i) * MS, 999)
    issues = {issue.code: issue for issue in health(builder.read()).issues}
    assert issues["launched_before"].count == 5
    assert "5.00 ms" in issues["launched_before"].message
