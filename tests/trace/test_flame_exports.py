"""Folded stacks and speedscope: texts that other tools read."""

from __future__ import annotations

import json

import pytest

from pyrometer.errors import InputError
from pyrometer.trace.analysis.registry import analyses
from pyrometer.trace.export.folded import folded_stacks
from pyrometer.trace.export.speedscope import SCHEMA, speedscope

US = 1000


def small(builder):
    builder.python("train.py(3): step", 0, 100)
    builder.op("aten::mm", 10, 50)
    builder.launch("gemm<1; 2>", at=20, start=200, dur=30)
    return builder.read()


def test_folded_stacks_of_the_host(builder):
    assert folded_stacks(small(builder)).splitlines() == [
        "thread 100;train.py(3): step 50000",
        "thread 100;train.py(3): step;aten::mm 45000",
        "thread 100;train.py(3): step;aten::mm;cudaLaunchKernel 5000",
    ]


def test_folded_stacks_of_devices_and_semicolons_in_names(builder):
    assert folded_stacks(small(builder), "device") == (
        "thread 100;train.py(3): step;aten::mm;cudaLaunchKernel;gemm<1, 2> 30000\n"
    )


def test_small_paths_fold_together(builder):
    builder.op("aten::large", 0, 1000)
    builder.op("aten::a", 1100, 1)
    builder.op("aten::b", 1200, 2)
    assert folded_stacks(builder.read(), min_share=0.01).splitlines() == [
        "thread 100;aten::large 1000000",
        "thread 100;(other) 3000",
    ]


def test_another_weight_is_refused(builder):
    with pytest.raises(InputError, match="host, device"):
        folded_stacks(builder.read(), "kernels")


def test_speedscope_has_a_profile_per_track(builder):
    found = speedscope(small(builder), name="training")
    assert (found["$schema"], found["name"], found["activeProfileIndex"]) == (SCHEMA, "training", 0)
    assert found["shared"]["frames"][0] == {"name": "train.py(3): step", "file": "train.py", "line": 3}
    host, stream = found["profiles"]
    assert (host["type"], host["unit"], host["startValue"], host["endValue"]) == (
        "evented",
        "nanoseconds",
        0,
        230 * US,
    )
    assert [(event["type"], event["frame"], event["at"]) for event in host["events"]] == [
        ("O", 0, 0),
        ("O", 1, 10 * US),
        ("O", 2, 20 * US),
        ("C", 2, 25 * US),
        ("C", 1, 60 * US),
        ("C", 0, 100 * US),
    ]
    assert [event["at"] for event in stream["events"]] == [200 * US, 230 * US]
    assert json.loads(json.dumps(found)) == found


def test_overlapping_work_gets_a_further_profile(builder):
    builder.device("kernel", "first", 0, 100)
    builder.device("kernel", "second", 50, 100)
    profiles = speedscope(builder.read())["profiles"]
    assert [len(profile["events"]) for profile in profiles] == [2, 2]
    assert profiles[1]["name"] == f"{profiles[0]['name']} (overlapping 1)"


def test_rounding_is_no_overlap(builder):
    builder.op("a", 0, 10)
    builder.op("b", 9.5, 10)
    (profile,) = speedscope(builder.read())["profiles"]
    assert [(event["type"], event["at"]) for event in profile["events"]] == [
        ("O", 0),
        ("C", 9500),
        ("O", 9500),
        ("C", 19500),
    ]


def test_steps_of_a_trace_with_stacks_fit_in_two_profiles(builder):
    builder.python("train.py(1): main", 0, 1000)
    for i in range(5):  # step() closes one annotation and opens the next
        builder.python("torch/profiler/profiler.py(9): step", 100 * i + 90, 20)
        builder.annotate(f"ProfilerStep#{i}", 100 * i + 100, 100)
        builder.op("aten::mm", 100 * i + 120, 50)
    assert len(speedscope(builder.read())["profiles"]) == 2


def test_the_thread_with_the_most_operators_comes_first(builder):
    builder.annotate("loading", 0, 500, tid=300)
    builder.op("aten::mm", 10, 5, tid=200)
    profiles = speedscope(builder.read())["profiles"]
    assert [len(profile["events"]) for profile in profiles] == [2, 2]
    assert profiles[0]["events"][0]["at"] == 10 * US


def test_the_analyses_of_this_part_are_listed():
    assert {"operators", "call_tree", "timeline", "phases", "modules", "user_lines", "memory"} <= set(
        analyses()
    )
