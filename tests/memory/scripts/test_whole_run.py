"""The peak of a script is that of all its steps, not only of those that were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pyrometer.cli.memory_profile import _over_limits
from pyrometer.memory.profile import MemoryProfile, WholeRun
from pyrometer.memory.scripts.heap import Meter, best_meter
from pyrometer.memory.scripts.whole_run import COMPILING_BYTES, RESOLUTION_BYTES, WholeRunPeak
from pyrometer.quantity import Bytes
from pyrometer.report.facts.memory import headline
from pyrometer.report.facts.memory_peaks import peaks
from pyrometer.workload.script.startup._pyrometer_inside import kinds

from .conftest import Both, FollowedHere

MIB = 2**20
STEPS_OF_TRAINING = """
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()

optimizer = torch.optim.SGD(model.parameters(), 0.1)
train(20)
MIDDLE
train(10)
"""
GRAPHS_KEPT = "total = sum(model(torch.randn(8192, 64)).sum() for _ in range(4)).item()"
PASSING = "with torch.no_grad():\n    model(torch.randn(65536, 64))"


def course_of(readings: Iterable[Bytes], released: Iterable[tuple[Bytes, Bytes] | None] = ()) -> WholeRunPeak:
    """Of a process whose meter and resident memory show these, one after the other, and then nothing new."""
    values, gone = iter(readings), iter(released)
    course = WholeRunPeak(Meter(lambda: next(values), "a meter"), lambda: next(gone, None), lambda: 0.0)
    course.recorded(10 * MIB, steps=2)
    return course


def test_validation_with_graphs_in_a_late_step_is_the_peak(follow_here: Callable[..., FollowedHere]) -> None:
    profile = follow_here(STEPS_OF_TRAINING.replace("MIDDLE", GRAPHS_KEPT)).profile
    whole = profile.whole_run
    assert whole is not None
    graphs = 4 * 8192 * (64 + 256) * 4  # of each batch the rows, and the activations behind ReLU
    assert profile.peak_bytes < 4 * MIB
    # Beside them what passes in the last forward pass, and what libraries take to compute it.
    assert 0.95 * graphs < profile.highest_bytes < 2 * graphs
    assert (whole.peak_step, whole.num_steps) == (21, 30)
    assert (
        whole.peak_phase == "forward" or whole.is_transient
    )  # which is seen only when something begins or ends


def test_a_peak_that_resident_memory_shows_late_is_of_where_most_was_alive() -> None:
    readings = iter([10 * MIB, 10 * MIB, 50 * MIB, 10 * MIB, 10 * MIB])
    released = iter([(100 * MIB, 0), (100 * MIB, 0), (160 * MIB, 50 * MIB)])
    # Reading resident memory takes a second at first: not again for a hundred.
    seconds = iter([0.0, 1.0, 1.0, 2.0, 3.0, 102.0, 103.0, 103.0])
    course = WholeRunPeak(
        Meter(lambda: next(readings), "a meter"), lambda: next(released), lambda: next(seconds)
    )
    course.recorded(10 * MIB, steps=2)
    for kind in (
        kinds.FORWARD_BEGIN,
        kinds.FORWARD_BEGIN + 1,
        kinds.OPTIMIZER_BEGIN + 1,
        kinds.FORWARD_BEGIN,
    ):
        course.at(kind, 0)
    whole = course.found(10 * MIB)
    assert whole is not None
    assert (whole.peak_bytes, whole.peak_step, whole.peak_phase) == (60 * MIB, 1, "forward")
    assert whole.is_transient


@pytest.mark.slow
def test_what_comes_and_goes_within_a_late_forward_pass_is_seen(run_both: Callable[..., Both]) -> None:
    profile = run_both(STEPS_OF_TRAINING.replace("MIDDLE", PASSING)).profile
    assert profile.highest_bytes > 100 * MIB  # two activations of 64 MiB


def test_steps_like_the_recorded_ones_are_no_higher(follow_here: Callable[..., FollowedHere]) -> None:
    profile = follow_here(STEPS_OF_TRAINING.replace("MIDDLE", "")).profile
    assert profile.whole_run is not None
    assert profile.whole_run.peak_bytes == profile.peak_bytes
    assert profile.whole_run.peak_step is None
    assert "no higher in all 30 steps" in headline(profile)


def test_a_script_that_was_recorded_whole_needs_no_other_peak(
    follow_here: Callable[..., FollowedHere],
) -> None:
    assert follow_here("model(torch.ones(1, 64))").profile.whole_run is None


def test_the_meter_counts_from_what_it_showed_beside_tensors() -> None:
    course = course_of([110 * MIB, 110 * MIB, 160 * MIB, 110 * MIB])
    for kind in (kinds.FORWARD_BEGIN, kinds.FORWARD_END, kinds.BACKWARD_BEGIN):
        course.at(kind, 1)
    whole = course.found(12 * MIB)
    assert whole is not None
    assert (whole.peak_bytes, whole.peak_phase, whole.peak_step) == (60 * MIB, "forward", 1)


def test_a_few_mib_more_are_not_put_down_to_tensors() -> None:
    course = course_of([110 * MIB, 110 * MIB + RESOLUTION_BYTES])
    course.at(kinds.FORWARD_END, 1)
    whole = course.found(10 * MIB)
    assert whole is not None
    assert (whole.peak_bytes, whole.peak_step) == (10 * MIB, None)


def test_what_a_compiler_takes_is_not_put_down_to_tensors() -> None:
    course = course_of([110 * MIB, 110 * MIB + COMPILING_BYTES])
    course.compiles()
    course.at(kinds.FORWARD_END, 1)
    whole = course.found(10 * MIB)
    assert whole is not None
    assert whole.peak_bytes == 10 * MIB


def test_memory_that_stays_resident_is_no_passing_peak() -> None:
    """As that of a library that is loaded meanwhile."""
    seen = [(300 * MIB, 0), (400 * MIB, 0)]
    course = course_of([110 * MIB] * 3, seen)
    course.at(kinds.FORWARD_END, 1)
    whole = course.found(10 * MIB)
    assert whole is not None
    assert whole.peak_bytes == 10 * MIB


def test_a_passing_peak_is_what_was_given_back() -> None:
    course = course_of([110 * MIB] * 3, [(300 * MIB, 0), (400 * MIB, 80 * MIB)])
    course.at(kinds.FORWARD_END, 1)
    whole = course.found(10 * MIB)
    assert whole is not None
    assert (whole.peak_bytes, whole.is_transient) == (90 * MIB, True)


def test_the_meter_sees_tensors() -> None:
    meter = best_meter()
    before = meter.read()
    held = torch.ones(8 * MIB, dtype=torch.uint8)
    assert meter.read() - before >= 0.9 * held.nbytes


def profile_with(whole: WholeRun) -> MemoryProfile:
    return MemoryProfile(
        name="script.py",
        device="cpu",
        peak_bytes=8 * MIB,
        peak_phase="backward",
        ledger_bytes={},
        whole_run=whole,
    )


LATER = WholeRun(
    peak_bytes=248 * MIB,
    peak_step=40,
    peak_phase="forward",
    num_steps=60,
    recorded_steps=2,
    resolution_bytes=4 * MIB,
    source="a meter",
)


def test_a_limit_is_on_the_whole_run() -> None:
    question: Any = SimpleNamespace(limits=SimpleNamespace(peak_bytes=50 * MIB, growth_bytes_per_step=None))
    assert _over_limits(question, profile_with(LATER)) == ["the peak is 248 MiB, 50.0 MiB are allowed"]


def test_what_each_figure_covers_stands_beside_it() -> None:
    profile = profile_with(LATER)
    assert headline(profile).startswith(
        "peak 248 MiB in forward of step 40 of 60 (steps 1–2 in detail: 8.00 MiB in backward)"
    )
    told = {peak.name: peak.meaning for peak in peaks(profile, None, None)}
    assert "of the first 2 steps" in told["tensors and scratch"]
    assert told["all 60 steps"].startswith("in step 40, to within 4.00 MiB")
