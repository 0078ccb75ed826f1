"""A cold start is recognised, said and left out; what recurs, and what devices do meanwhile, is not touched."""

from __future__ import annotations

import pytest

from pyrometer.record import to_dict
from pyrometer.trace.analysis.health import health
from pyrometer.trace.analysis.kernels import top_kernels
from pyrometer.trace.analysis.registry import analyze
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge
from pyrometer.trace.steady.steady import steady

MS = 1000


def work(builder, at, *, number=40, name="gemm", kernel_us=80):
    """Work that keeps a device mostly busy, one launch every 100 µs; gives when it is over."""
    for i in range(number):
        builder.op("aten::mm", at + i * 100, 60)
        builder.launch(name, at + i * 100 + 10, at + i * 100 + 20, kernel_us)
    return at + number * 100


def cold(builder, call, took_ms, *, at=0.0):
    builder.op("aten::empty", at, took_ms * MS + 20)
    builder.call(call, at + 10, took_ms * MS)
    return at + took_ms * MS + 30


@pytest.mark.parametrize("call", ["cudaFree", "cudaMalloc", "cuModuleLoadData", "hipModuleLoad", "hipInit"])
def test_creating_a_context_is_no_part_of_the_figures(builder, call):
    work(builder, cold(builder, call, 300))
    report = report_rank(builder.read())
    (left,) = report.left_out
    assert (left.reason, left.name, left.span_ns) == ("first_call", call, 300_000_000)
    assert report.recorded_span_ns - report.span_ns == 300_000_000
    assert report.breakdown_ns.total_ns == report.span_ns
    assert report.device_busy_ns / report.span_ns > 0.75
    verdict = judge(report)
    assert call not in verdict.sentence
    assert all(gain.ratio > 0.5 for gain in report.recoverable if gain.kind in {"call", "sync", "launch"})


@pytest.mark.parametrize("call", ["cudaLaunchKernel", "hipLaunchKernel"])
def test_the_first_launch_of_a_kernel_is_compared_with_the_median(builder, call):
    builder.op("aten::mm", 0, 300 * MS + 60)
    correlation = builder.call(call, 10, 300 * MS)
    builder.device("kernel", "loaded", 300 * MS + 20, 30, correlation=correlation)
    at = 301.0 * MS
    for i in range(40):
        builder.op("aten::mm", at + i * 100, 60)
        correlation = builder.call(call, at + i * 100 + 10, 5)
        builder.device("kernel", "gemm", at + i * 100 + 20, 80, correlation=correlation)
    report = report_rank(builder.read())
    (left,) = report.left_out
    assert (left.name, left.usual_ns, left.span_ns) == (call, 5000, 300_000_000 - 5000)
    assert max(op.host_total_ns for op in report.top_ops if op.name == "aten::mm") < 10_000_000
    launch = [gain.ratio for gain in report.recoverable if gain.kind == "launch"]
    assert all(ratio > 0.5 for ratio in launch)


def test_a_library_that_starts_within_an_operator_is_left_out(builder):
    builder.op("aten::cudnn_convolution", 0, 300 * MS)
    builder.launch("conv", 299.9 * MS, 300 * MS, 80)
    at = work(builder, 300.1 * MS)
    for i in range(40):
        builder.op("aten::cudnn_convolution", at + i * 100, 60)
        builder.launch("conv", at + i * 100 + 10, at + i * 100 + 20, 80)
    report = report_rank(builder.read())
    (left,) = report.left_out
    assert (left.reason, left.name, left.count) == ("first_call", "aten::cudnn_convolution", 1)
    assert left.span_ns == pytest.approx(300e6, rel=0.001)
    assert report.device_busy_ns / report.span_ns > 0.75


def first_products(builder, shapes, times_ms):
    """Products on the host of these shapes, as long as these times, in this order."""
    at = 0.0
    for shape, took in zip(shapes, times_ms, strict=True):
        builder.op("aten::mm", at, took * MS, **{"Input Dims": [[shape, shape], [shape, shape]]})
        builder.op("aten::add", at + took * MS, 20)
        at += took * MS + 30
    return [left.name for left in steady(builder.read()).left_out]


def test_on_the_host_a_first_call_is_compared_with_calls_of_its_shapes(builder):
    assert first_products(builder, [64] * 20, [80, *[0.05] * 19]) == ["aten::mm"]


def test_a_product_of_more_is_no_first_call(builder):
    assert first_products(builder, [4096, *[64] * 19], [80, *[0.05] * 19]) == []


def test_a_slow_operator_later_on_is_no_first_call(builder):
    assert first_products(builder, [64] * 20, [*[0.05] * 10, 80, *[0.05] * 9]) == []


def test_a_first_operator_beside_work_of_a_device_stays(builder):
    builder.op("aten::mm", 0, 60)
    builder.launch("gemm", 10, 20, 100 * MS)
    builder.op("aten::cudnn_convolution", 100, 90 * MS)
    builder.launch("conv", 89 * MS, 100.1 * MS, 80)
    at = work(builder, 101 * MS)
    for i in range(10):
        builder.op("aten::cudnn_convolution", at + i * 100, 60)
        builder.launch("conv", at + i * 100 + 10, at + i * 100 + 20, 80)
    assert steady(builder.read()).left_out == ()


def test_a_single_call_far_above_the_median_of_its_name_is_left_out_wherever_it_is(builder):
    at = 0.0
    for i in range(30):
        builder.op("aten::empty", at, (400 if i == 20 else 1.2) * MS)
        builder.call("cudaFree", at + 10, 380 * MS if i == 20 else 1 * MS)
        at = work(builder, at + (400 if i == 20 else 1.2) * MS, number=5)
    trace = builder.read()
    (left,) = steady(trace).left_out
    assert (left.count, left.usual_ns, left.span_ns) == (1, 1_000_000, 379_000_000)
    assert steady(trace).trace.activity.span_ns == trace.activity.span_ns - left.span_ns


def test_it_is_said_in_one_line_with_the_figure(builder):
    work(builder, cold(builder, "cudaFree", 312))
    (issue,) = [issue for issue in health(builder.read()).issues if issue.code.startswith("cold_start")]
    assert issue.severity == "warning"
    assert "312 ms" in issue.message
    assert "cudaFree" in issue.message
    assert "\n" not in issue.message


def test_a_slow_launch_of_a_known_kernel_and_a_full_queue_stay(builder):
    work(builder, 0)
    builder.op("aten::mm", 5 * MS, 30 * MS)
    builder.launch("gemm", 5 * MS, 35 * MS, 80, call_us=30 * MS)  # nothing is loaded: it was launched before
    work(builder, 36 * MS)
    assert steady(builder.read()).left_out == ()


def test_what_a_device_does_meanwhile_is_untouched(builder):
    builder.launch("long", 0, 20, 200 * MS)
    builder.op("aten::mm", 0, 30)
    end = cold(builder, "cuModuleLoadData", 300, at=100)
    work(builder, end)
    trace = builder.read()
    found = steady(trace)
    assert found.left_out[0].span_ns == 300_000_000 - (200_020 - 110) * 1000
    assert top_kernels(found.trace)[0].total_ns == 200_000_000
    assert found.trace.activity.span_ns == trace.activity.span_ns - found.left_out[0].span_ns


def test_later_events_keep_their_times(builder):
    work(builder, cold(builder, "cudaFree", 300))
    trace = builder.read()
    before, after = trace.device_work, steady(trace).trace.device_work
    assert after.select("start_ns", "end_ns").equals(before.select("start_ns", "end_ns"))


def test_calls_that_recur_in_each_step_are_the_program(builder):
    for i in range(5):
        at = i * 20.0 * MS
        builder.annotate(f"ProfilerStep#{i}", at, 20 * MS)
        work(builder, cold(builder, "cudaMalloc", 5, at=at))
    trace = builder.read()
    assert steady(trace).left_out == ()
    assert not {issue.code for issue in health(trace).issues} & {"cold_start", "cold_start_only"}


def test_setting_up_throughout_a_record_without_steps_keeps_its_figures_with_a_warning(builder):
    at = 0.0
    for i in range(10):
        at = work(builder, cold(builder, "cudaMalloc", 20, at=at), number=3, name=f"gemm{i}")
    trace = builder.read()
    report = report_rank(trace)
    assert report.left_out == []
    assert report.span_ns == trace.activity.span_ns
    assert "cold_start_only" in {issue.code for issue in report.health}


def test_a_record_of_next_to_nothing_keeps_its_figures_with_a_warning(builder):
    builder.op("aten::mm", 0, 500 * MS)
    builder.call("cudaFree", 10, 400 * MS)
    builder.launch("gemm", 450 * MS, 451 * MS, 80)
    report = report_rank(builder.read())
    assert report.left_out == []
    assert report.span_ns == report.recorded_span_ns
    assert "cold_start_only" in {issue.code for issue in report.health}


def steps(builder, lengths_ms, *, number=12):
    at = 0.0
    for i, length in enumerate(lengths_ms):
        builder.annotate(f"ProfilerStep#{i}", at, length * MS)
        work(builder, at + length * MS - number * 100, number=number)
        at += length * MS
    return builder


def test_an_outlier_step_at_the_start_is_left_out_with_its_kernels(builder):
    report = report_rank(steps(builder, [50, 2, 2.1, 1.9]).read())
    (left,) = report.left_out
    assert (left.reason, left.name, left.count) == ("first_steps", "ProfilerStep#0", 1)
    assert (left.num_kernels, left.kernel_sum_ns) == (12, 12 * 80_000)
    assert left.usual_ns == 2_000_000
    assert [step.name for step in report.steps] == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
    assert report.span_ns == 6_000_000
    assert report.num_kernels == 36
    assert report.breakdown_ns.total_ns == report.span_ns
    assert report.device_busy_ns == 36 * 80_000


@pytest.mark.parametrize("lengths", [[5, 2, 2, 2], [2, 2, 50, 2], [20, 20, 20, 2], [9, 2], [50]])
def test_steps_that_vary_come_later_or_are_most_of_all_stay(builder, lengths):
    assert steady(steps(builder, lengths).read()).left_out == ()


@pytest.mark.parametrize(
    ("lengths", "number"),
    [
        ([50, 9, 9, 9, 48, 9, 9, 9], 0),
        ([50, 9, 9, 9, 9, 9, 30, 9], 0),
        ([900, 60, 9, 9, 50, 9, 9], 1),
        ([50, 9, 9, 9, 24, 9], 1),
    ],
)
def test_long_steps_that_come_again_are_no_cold_start(builder, lengths, number):
    assert sum(left.count for left in steady(steps(builder, lengths).read()).left_out) == number


def test_a_last_step_that_holds_next_to_nothing_makes_no_outlier_of_the_first(builder):
    builder.annotate("ProfilerStep#0", 0, 50 * MS)
    work(builder, 0)
    builder.annotate("ProfilerStep#1", 50 * MS, 50)
    assert steady(builder.read()).left_out == ()


def test_work_of_a_first_step_that_outlasts_it_on_the_device_is_left_out_too(builder):
    steps(builder, [50, 6, 6, 6])
    builder.op("aten::mm", 49.9 * MS, 50)
    builder.launch("tail", 49.92 * MS, 50 * MS, 2 * MS, stream=8)
    found = steady(builder.read())
    assert found.trace.activity.span_ns == 16_000_000
    assert "tail" not in found.trace.device_work["name"].to_list()


def test_a_host_that_runs_ahead_makes_no_outlier_of_the_step_that_fills_the_queue(builder):
    at, done = 0.0, 0.0
    for i, host_us in enumerate([3000, 400, 400, 400]):
        builder.annotate(f"ProfilerStep#{i}", at, host_us)
        for k in range(12):
            builder.op("aten::mm", at + k * 30, 20)
            done = max(done, at + k * 30 + 10)
            builder.launch("gemm", at + k * 30 + 5, done, 800)
            done += 801
        at += host_us
    assert steady(builder.read()).left_out == ()


def test_frames_around_all_steps_do_not_own_what_is_left_out(builder):
    steps(builder, [50, 2, 2, 2])
    builder.python("train.py(3): main", -10, 60 * MS)
    found = steady(builder.read())
    main = found.trace.events.filter(found.trace.events["name"] == "train.py(3): main")
    assert main["start_ns"][0] == found.trace.steps["start_ns"][0]


def test_compilation_that_the_profiler_marks_is_left_out(builder):
    builder.op("Torch-Compiled Region: 0/0", 0, 400 * MS + 50)
    builder.annotate("_compile.compile_inner (dynamo_timed)", 10, 400 * MS)
    builder.annotate("inductor_compile (dynamo_timed)", 100, 300 * MS)
    work(builder, 401 * MS)
    (left,) = steady(builder.read()).left_out
    assert (left.reason, left.count, left.span_ns) == ("compilation", 1, 400_000_000)


def test_json_tells_what_was_left_out(builder):
    work(builder, cold(builder, "cudaFree", 300))
    trace = builder.read()
    document = to_dict(report_rank(trace))
    assert to_dict(analyze(trace, "steady"))["left_out"] == document["left_out"]
    assert document["left_out"][0]["name"] == "cudaFree"
    assert document["recorded_span_ns"] > document["span_ns"]
