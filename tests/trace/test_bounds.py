"""What bounds a run is what would make it shorter: by replay, never by the share of its time."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.analysis.bounds import bounds
from pyrometer.trace.analysis.recoverable import largest_gains
from pyrometer.trace.analysis.what_if import what_if
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.records.gains import HELPS, Bounds, FreeResource, bounds_of
from pyrometer.trace.trace import RankTrace

RESOURCE_OF = {"kernel": "compute", "collective": "communication", "data": "data", "copy": "copies"}
"""Of gains whose change is a part of one resource."""


def free(found: Bounds, resource: str) -> float:
    return next((tried.free_ratio for tried in found.resources if tried.resource == resource), 1.0)


def is_what_would_help(trace: RankTrace) -> None:
    """The property: what bounds would help, and no gain that is told wins more than its resource."""
    found = bounds(trace)
    for tried in found.resources:
        assert (
            0 <= tried.free_ratio <= tried.changed_ratio <= 1 or tried.free_ratio > 1
        )  # a replay may begin later
    named = next((tried for tried in found.resources if tried.resource == found.bound), None)
    able = [tried for tried in found.resources if tried.free_ratio * HELPS <= 1]
    if named is not None:
        assert named in able
        assert named.changed_ratio == min(tried.changed_ratio for tried in able)
    if found.bound == "balanced":
        assert not able
    kernels, others = (
        what_if(trace, change="kernel").ratio,
        min((t.free_ratio for t in found.resources), default=1),
    )
    assert found.bound != "compute" or not (others < 1 / HELPS < kernels)
    for gain in largest_gains(trace):
        if gain.kind in RESOURCE_OF and "nccl" not in gain.name:
            assert gain.ratio >= free(found, RESOURCE_OF[gain.kind]) - 1e-6


@given(data=st.data())
def test_what_bounds_any_trace_would_help(generated: ModuleType, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "any.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    is_what_would_help(read_trace(path).ranks[0])


def test_what_bounds_real_traces_would_help(real_trace: Path) -> None:
    is_what_would_help(read_trace(real_trace).ranks[0])


def test_kernels_behind_a_host_that_is_slower_do_not_bound(builder: Any) -> None:
    for at in range(0, 2000, 100):  # kernels run 80 % of the time, and nobody waits for them
        builder.op("aten::conv2d", at, 98)
        builder.launch("conv", at + 90, at + 97, 80)
    trace = builder.read()
    assert what_if(trace, change="kernel").ratio > 0.95
    assert bounds(trace).bound == "host"


def test_a_host_and_a_device_of_the_same_length_are_balanced(builder: Any) -> None:
    for at in range(0, 2000, 100):
        builder.op("aten::conv2d", at, 96)
        builder.launch("conv", at + 90, at + 97, 95)
    found = bounds(builder.read())
    assert found.bound == "balanced"
    assert {tried.resource for tried in found.resources[:2]} == {"compute", "host"}


def test_python_that_an_operator_runs_is_the_operators(builder: Any) -> None:
    for at in range(0, 3000, 1000):  # a compiled function calls its kernels from Python
        builder.op("CompiledFunction", at, 990)
        builder.python("<built-in function kernel>", at + 10, 970)
    found = bounds(builder.read())
    assert found.bound == "operators"
    assert free(found, "python") == 1
    assert free(found, "operators") < 0.1


def test_python_beside_operators_bounds(builder: Any) -> None:
    for at in range(0, 3000, 1000):
        builder.python("tokenize", at, 900)
        builder.op("aten::mm", at + 900, 95)
    assert bounds(builder.read()).bound == "python"


def test_a_loader_bounds_what_else_runs_ahead(builder: Any) -> None:
    for at in range(0, 3000, 1000):
        builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 380)
        builder.op("aten::conv2d", at + 390, 590)
        builder.launch("conv", at + 395, at + 405, 585)
    found = bounds(builder.read())
    assert found.bound == "data"
    assert free(found, "data") == pytest.approx(1 - 3 * 380 / 2990, abs=0.01)
    assert free(found, "compute") > 0.95


def test_of_what_would_help_the_change_that_can_be_made_counts() -> None:
    tried = [
        FreeResource(resource="host", free_ratio=0.64, changed_ratio=0.74),
        FreeResource(resource="data", free_ratio=0.67, changed_ratio=0.67),
        FreeResource(resource="compute", free_ratio=0.98, changed_ratio=0.99),
    ]
    assert bounds_of(tried, 0.0).bound == "data"
    assert bounds_of(tried, 0.0).having_data(0.05).bound == "host"
    assert bounds_of(tried, 0.6).bound == "unrecorded"
    assert bounds_of(tried[2:], 0.0).bound == "balanced"


def test_of_the_rest_as_much_is_left_as_the_measured_data_leaves() -> None:
    tried = [
        FreeResource(resource="operators", free_ratio=0.8, changed_ratio=0.9),
        FreeResource(resource="data", free_ratio=0.2, changed_ratio=0.2),
    ]
    found = bounds_of(tried, 0.0).having_data(0.4)
    assert (found.bound, found.free_ratio) == ("data", pytest.approx(0.6))
    assert free(found, "operators") == pytest.approx(1 - 0.2 * 0.6 / 0.2)


def test_nothing_bounds_an_empty_trace(builder: Any) -> None:
    assert bounds(builder.read()) == Bounds()
