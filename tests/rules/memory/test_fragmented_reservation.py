"""PYR207: reserved memory that no tensor ever used."""

from __future__ import annotations

import msgspec
import pytest

from pyrometer.hardware.environment import read_environment
from pyrometer.memory.profile import ProcessLevels
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.trace.records.memory import DeviceMemory, Memory, MemoryTimeline
from pyrometer.trace.reporting.rank_report import report_rank

CODE = "PYR207"
GIB = 2**30


def levels(reserved: float, allocated: float) -> ProcessLevels:
    return ProcessLevels(reserved_peak_bytes=int(reserved * GIB), allocated_peak_bytes=int(allocated * GIB))


def test_a_large_gap_is_told_with_the_setting(profile, findings):
    memory = profile({"parameters": 4}, levels=levels(10, 6), device="cuda:0")
    (finding,) = findings(CODE, Case(target="t", memory=memory))
    assert finding.cost.bytes == 4 * GIB
    assert finding.evidence["unused_share"] == pytest.approx(0.4)
    assert finding.advice.rewrite.endswith("expandable_segments:True")
    assert finding.advice.lever == "expandable_segments"
    assert finding.confidence == "medium"


@pytest.mark.parametrize(("reserved", "allocated"), [(10, 9), (0.5, 0.1), (6, 6)])
def test_a_cache_of_usual_size_is_not_spoken_of(profile, findings, reserved, allocated):
    memory = profile({"parameters": 4}, levels=levels(reserved, allocated), device="cuda:0")
    assert findings(CODE, Case(target="t", memory=memory)) == []


def test_programs_on_the_cpu_have_no_reservation(profile, findings):
    assert findings(CODE, Case(target="t", memory=profile({"parameters": 4}))) == []


def test_a_setting_that_is_on_already_is_not_advised_again(profile, findings):
    environment = msgspec.structs.replace(
        read_environment(), settings={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    )
    memory = profile({"parameters": 4}, levels=levels(10, 6), device="cuda:0")
    (finding,) = findings(CODE, Case(target="t", memory=memory, environment=environment))
    assert finding.advice.rewrite is None
    assert finding.advice.lever is None
    assert "on already" in finding.advice.text


def in_trace(builder, reserved: float | None):
    builder.op("aten::mm", 0.0, 10.0)
    device = DeviceMemory(
        device="cuda:0",
        num_allocations=1,
        num_frees=0,
        allocated_bytes=1,
        freed_bytes=0,
        net_bytes=1,
        peak_bytes=2 * GIB,
        peak_ns=0,
        peak_where=Place(),
        peak_reserved_bytes=None if reserved is None else int(reserved * GIB),
        num_allocations_per_step=1.0,
        allocated_bytes_per_step=1.0,
        churn_bytes_per_step=0.0,
        timeline=MemoryTimeline(),
    )
    return msgspec.structs.replace(report_rank(builder.read()), memory=Memory(devices=[device]))


def test_a_trace_tells_it_where_the_profile_does_not(builder, profile, findings):
    trace = in_trace(builder, 4.0)
    (finding,) = findings(CODE, Case(target="t", trace=trace, memory=profile({"parameters": 1})))
    assert finding.links == ["/trace/memory/devices/0"]
    told = profile({"parameters": 4}, levels=levels(10, 9.9), device="cuda:0")
    assert findings(CODE, Case(target="t", trace=trace, memory=told)) == []


def test_a_trace_without_reserved_memory_is_silent(builder, findings):
    assert findings(CODE, Case(target="t", trace=in_trace(builder, None))) == []
