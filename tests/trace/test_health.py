"""Each defect of a trace is reported with what it falsifies; a clean trace is left alone, and so is a near miss."""

from __future__ import annotations

import msgspec
import pytest

from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.health import health
from pyrometer.trace.health.issue import Health
from pyrometer.trace.info import Repair
from pyrometer.trace.trace import RankTrace

LIMITS = {"no_stacks", "no_shapes"}


def step(builder, i, *, launches=6, device=True):
    at = i * 1000.0
    builder.annotate(f"ProfilerStep#{i}", at, 1000)
    for k in range(launches):
        builder.op(f"aten::op{k}", at + k * 100, 60)
        if device:
            builder.launch(f"kernel{k}", at + k * 100 + 10, at + k * 100 + 40, 50)


def clean(builder, *, steps=3, **options):
    for i in range(steps):
        step(builder, i, **options)
    return builder


def codes(trace):
    return {issue.code for issue in health(trace).issues}


def the(trace, code):
    return next(issue for issue in health(trace).issues if issue.code == code)


def with_info(trace, **changes):
    return RankTrace(msgspec.structs.replace(trace.info, **changes), trace.tables)


def test_a_clean_trace_has_high_confidence_and_only_says_what_it_cannot_tell(builder):
    found = health(clean(builder).read())
    assert found.confidence == "high"
    assert {issue.code for issue in found.issues} == LIMITS
    assert {issue.severity for issue in found.issues} == {"info"}
    assert found.unreliable == []


def test_it_survives_json(builder):
    found = health(clean(builder).read())
    assert from_json(Health, to_json(found)) == found


def test_an_empty_trace_is_an_error(builder):
    found = health(builder.read())
    assert found.confidence == "low"
    assert found.issues[0].code == "near_empty"
    assert "breakdown" in found.unreliable


def test_nearly_nothing_is_a_warning_and_one_small_step_is_not(builder, new_builder, tmp_path):
    step(builder, 0, launches=3)
    assert the(builder.read(), "near_empty").count == 6
    step(enough := new_builder(tmp_path), 0, launches=5)
    assert "near_empty" not in codes(enough.read("enough.json"))


def test_a_file_that_is_cut_off(builder):
    cut = Repair(code="truncated", num_events=0, num_lost=1, first_byte=80, message="at byte 80")
    trace = with_info(clean(builder).read(), repaired=[cut], num_lost_events=1)
    assert "at byte 80" in the(trace, "truncated").message
    assert "lost_events" not in codes(trace)
    assert health(trace).confidence == "medium"


@pytest.mark.parametrize(("lost", "confidence"), [(0, "high"), (1, "medium"), (500, "low")])
def test_lost_events(builder, lost, confidence):
    trace = with_info(clean(builder, steps=20).read(), num_lost_events=lost)
    assert health(trace).confidence == confidence


def test_mended_events_lower_nothing(builder):
    mended = Repair(code="bad_escape", num_events=7, message="")
    trace = with_info(clean(builder).read(), repaired=[mended])
    assert the(trace, "repaired").count == 7
    assert health(trace).confidence == "high"


def test_orphans_falsify_what_needs_launches_when_they_are_many(builder):
    clean(builder, steps=5)
    builder.device("kernel", "left_over", 5000, 10)
    assert the(builder.read("one.json"), "orphans").severity == "info"
    for i in range(5):
        builder.device("kernel", "lost", 5100 + i * 20, 10)
    issue = the(builder.read("many.json"), "orphans")
    assert (issue.severity, issue.count) == ("warning", 6)
    assert "critical_path" in issue.unreliable


def test_launches_that_left_no_work(builder):
    clean(builder)
    for i in range(5):
        builder.call("cudaLaunchKernel", 3000 + i * 10, 5)
    issue = the(builder.read("lost.json"), "launches_without_work")
    assert (issue.severity, issue.count) == ("warning", 5)
    builder.call("cudaStreamBeginCapture_v10000", 2990, 5)
    assert the(builder.read("captured.json"), "launches_without_work").severity == "info"


def test_a_few_launches_and_empty_fills_may_leave_no_work(builder):
    clean(builder)
    for i in range(4):
        builder.call("cudaLaunchKernel", 3000 + i * 10, 5)
    for i in range(50):
        builder.call("cudaMemsetAsync", 4000 + i * 10, 5)
    assert "launches_without_work" not in codes(builder.read())


def test_steps_without_device_work_are_told_apart_by_place(builder, new_builder, tmp_path):
    for i in range(6):
        step(builder, i, device=i != 3)
    issue = the(builder.read("middle.json"), "steps_without_device_work")
    assert (issue.count, issue.severity) == (1, "warning")
    assert "1 of 6 steps" in issue.message
    first = new_builder(tmp_path)
    for i in range(6):
        step(first, i, device=i >= 2)
    assert the(first.read("first.json"), "dropped_window").count == 2


def test_most_steps_without_device_work_is_an_error(builder):
    for i in range(32):
        step(builder, i, device=i < 2)
    issue = the(builder.read(), "steps_without_device_work")
    assert (issue.severity, issue.count) == ("error", 30)
    assert "breakdown" in issue.unreliable


def test_steps_without_device_work_are_normal_on_the_cpu(builder):
    assert codes(clean(builder, device=False).read()) == LIMITS | {"cpu_only"}


def test_device_work_may_run_in_a_later_step_than_its_launch(builder):
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i}", i * 100, 100)
        for k in range(5):
            builder.launch("late", i * 100 + k * 10, 1000 + i * 100 + k * 10, 5)
    assert not codes(builder.read()) & {"steps_without_device_work", "dropped_window"}


def test_work_that_begins_before_its_launch(builder):
    clean(builder)
    builder.launch("ahead", 3000, 2990, 5)
    issue = the(builder.read(), "clock_regression")
    assert "10.0 µs" in issue.message
    assert issue.severity == "warning"


def test_rounding_is_no_clock_regression(builder):
    clean(builder)
    builder.launch("rounded", 3000, 2999, 5)
    assert "clock_regression" not in codes(builder.read())


def test_a_stray_event_stretches_the_span(builder):
    clean(builder, steps=20)
    for event in builder.events:
        event["ts"] += 1e9
    builder.op("aten::clamped", 0, 1)
    issue = the(builder.read(), "stray_events")
    assert issue.count == 1
    assert "aten::clamped" in issue.message


def test_a_long_pause_between_steps_is_no_stray(builder):
    clean(builder, steps=20)
    for event in builder.events[len(builder.events) // 2 :]:
        event["ts"] += 1e9
    assert "stray_events" not in codes(builder.read())


def test_a_kernel_that_never_ended(builder):
    clean(builder)
    builder.launch("endless", 3000, 3010, 4e9)
    assert the(builder.read(), "impossible_duration").severity == "error"


@pytest.mark.parametrize(("us", "reported"), [(100, False), (400, True)])
def test_the_profilers_own_time(builder, us, reported):
    clean(builder)
    builder.add("overhead", "Buffer Flush", 200, us)
    assert ("profiler_overhead" in codes(builder.read())) is reported


def test_python_calls_inflate_the_host(builder):
    clean(builder)
    builder.python("train.py(3): step", 0, 900)
    trace = builder.read()
    assert {"python_tracer"} <= codes(trace)
    assert "no_stacks" not in codes(trace)


def test_spans_that_cross(builder):
    clean(builder, steps=1)
    builder.annotate("inner", 100, 100)
    builder.annotate("same", 100, 100)
    builder.annotate("elsewhere", 150, 500, tid=9)
    assert "overlapping_spans" not in codes(builder.read("nested.json"))
    builder.annotate("crossing", 150, 100)
    assert the(builder.read("crossing.json"), "overlapping_spans").count == 1


def test_host_events_that_cross(builder):
    clean(builder)
    for i in range(2):
        builder.op("aten::odd", i * 1000 + 50, 40)
    issue = the(builder.read(), "nesting_violations")
    assert (issue.count, issue.severity) == (2, "warning")


def test_kernels_that_overlap_on_a_stream(builder):
    clean(builder)
    builder.launch("first", 3000, 3010, 20)
    builder.launch("second", 3010, 3030, 20)
    assert "stream_overlap" not in codes(builder.read("touching.json"))
    builder.launch("dependent", 3020, 3045, 20)
    assert the(builder.read("overlapping.json"), "stream_overlap").count == 1


def test_what_the_trace_does_not_hold(builder, new_builder, tmp_path):
    lone = new_builder(tmp_path, distributedInfo={"rank": 1, "world_size": 8})
    for i in range(12):
        lone.launch("gemm", i * 100, i * 100 + 20, 50)
    lone.add("hardware_counters_of_tomorrow", "x", 0, 1)
    found = codes(lone.read())
    assert {"no_operators", "one_rank", "unknown_categories"} <= found
    assert {"single_step"} <= codes(clean(builder, steps=1).read("single.json"))


def test_with_shapes_and_stacks_nothing_is_missing(builder):
    clean(builder)
    builder.add("cpu_op", "aten::mm", 3000, 5, **{"Input Dims": [[2, 2], [2, 2]], "Call stack": "a.py(1): f"})
    assert codes(builder.read()) == set()


def test_published_traces_of_whole_programs_are_healthy(real_traces):
    from pyrometer.trace.reading.read import read_trace

    for name in ("legacy_resnet50_workers0", "h100_bert_small", "mi300_bert_small", "sampled_rank0"):
        assert health(read_trace(real_traces / f"{name}.json.gz").ranks[0]).confidence == "high"
    orphaned = health(read_trace(real_traces / "h100_qwen_orphans.json.gz").ranks[0])
    assert orphaned.confidence == "medium"
    assert next(issue for issue in orphaned.issues if issue.code == "orphans").count == 509


def test_what_is_called_unreliable_exists():
    from pyrometer.trace.analysis.registry import analyses
    from pyrometer.trace.health import issue as checks

    assert {*checks.TOTALS, *checks.PER_STEP, *checks.LINKED} - {"difference"} <= set(analyses())
