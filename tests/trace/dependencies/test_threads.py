"""A second thread that works while the main thread waits: nothing in the record ties the two."""

from __future__ import annotations

from typing import Any

import pytest

from pyrometer.trace.analysis.bounds import bounds
from pyrometer.trace.analysis.what_if import what_if
from pyrometer.trace.dependencies.graph import dependencies
from pyrometer.trace.records.gains import Bounds

WORKER = 300


def launches(builder: Any, at: float, kernel: float, *, number: int = 10, **op: Any) -> float:
    """Operators of a worker that wait for their result; when it has it."""
    device = at + 15
    for i in range(number):
        builder.op("aten::mm", at + 20 * i, 18, tid=WORKER, **op)
        start = max(device, at + 20 * i + 15)
        builder.launch("gemm", at + 20 * i + 5, start, kernel, tid=WORKER)
        device = start + kernel
    begin = at + 20 * number
    builder.call("cudaStreamSynchronize", begin, max(device + 3 - begin, 2), tid=WORKER)
    return max(device + 3, begin + 2)


def steps(builder: Any, kernel: float, *, before: float = 0.0, wait: str | None = None, **op: Any) -> Bounds:
    """A main thread that only marks its steps, and a worker that does all the rest of them."""
    now = 0.0
    for step in range(4):
        builder.op("aten::empty", now, 6)
        done = launches(builder, now + 16 + before, kernel, **op)
        if wait:
            builder.python(wait, now + 10 + before, done - now - before)
        builder.op("aten::empty", done + 12, 6)
        builder.annotate(f"ProfilerStep#{step}", now, done + 18 - now)
        now = done + 40
    return bounds(builder.read())


@pytest.mark.parametrize("numbered", [{}, {"Sequence number": 3}])
def test_what_bounds_a_worker_bounds_the_run(
    new_builder: Any, tmp_path: Any, numbered: dict[str, int]
) -> None:
    slow_kernels = steps(new_builder(tmp_path), 250, **numbered)
    assert slow_kernels.bound == "compute"
    assert slow_kernels.free_ratio < 0.2
    slow_host = steps(new_builder(tmp_path), 3, **numbered)
    assert slow_host.bound == "host"


def test_what_the_main_thread_does_before_it_waits_is_its_own(builder: Any) -> None:
    found = steps(builder, 250, before=4000)
    free = {tried.resource: tried.free_ratio for tried in found.resources}
    assert found.bound == "host"
    assert free["compute"] == pytest.approx(1 - 2500 / 6600, abs=0.05)


def test_a_lock_that_the_main_thread_waits_for_is_no_python_of_its_own(builder: Any) -> None:
    found = steps(builder, 250, wait="<method 'acquire' of '_thread.lock' objects>")
    assert found.bound == "compute"


def test_that_work_is_awaited_is_said(builder: Any) -> None:
    steps(builder, 250)
    assert any("4 stretches of work" in note for note in dependencies(builder.read()).notes)


def test_a_thread_beside_a_main_thread_that_works_is_not_awaited(builder: Any) -> None:
    for step in range(4):
        builder.annotate(f"ProfilerStep#{step}", step * 1000, 1000)
        for i in range(9):
            builder.op("aten::mm", step * 1000 + i * 110, 100)
        builder.op("aten::copy_", step * 1000 + 205, 700, tid=WORKER)
    assert what_if(builder.read(), change="op:copy_").ratio == 1.0


def test_silence_that_outlasts_the_other_thread_is_no_wait_for_it(builder: Any) -> None:
    for step in range(4):
        builder.op("aten::mm", step * 3000, 900)
        builder.op("aten::copy_", step * 3000 + 1000, 800, tid=WORKER)
    builder.op("aten::mm", 12_000, 900)
    assert what_if(builder.read(), change="op:copy_").ratio == 1.0
