"""What a page draws of a rank: the same slices, sums and launches as the trace holds, however much is merged."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json
from pyrometer.trace.analysis.call_tree import call_tree
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.timing.placing import place_slices
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.calls import find_calls
from pyrometer.trace.view.record import TraceView
from pyrometer.trace.view.view import view_trace


def decoded(view: TraceView) -> list[dict[str, Any]]:
    """The slices as a reader of the columns finds them."""
    found: list[dict[str, Any]] = []
    columns = zip(view.slices.gap_ns, view.slices.dur_ns, view.slices.label, strict=True)
    for track, row, count in zip(view.lanes.track, view.lanes.row, view.lanes.num_slices, strict=True):
        time = 0
        for gap, dur, label in itertools.islice(columns, count):
            time += gap
            found.append(
                {
                    "track": track,
                    "row": row,
                    "start_ns": time,
                    "dur_ns": dur,
                    "name": view.names[view.labels.name[label]],
                    "kind": view.kinds[view.labels.kind[label]],
                    "num_events": 1,
                    "source": -1,
                }
            )
            time += dur
    assert next(columns, None) is None
    for at, num, busy in zip(
        itertools.accumulate(view.merged.slice), view.merged.num_events, view.merged.busy_ns, strict=True
    ):
        found[at] |= {"num_events": num, "busy_ns": busy}
    launches = zip(
        itertools.accumulate(view.launches.slice), itertools.accumulate(view.launches.source), strict=True
    )
    for work, source in launches:
        found[work]["source"] = source
    return found


def by_name(view: TraceView, name: str) -> dict[str, Any]:
    return next(one for one in decoded(view) if one["name"] == name)


@pytest.fixture
def trace(builder: Any) -> RankTrace:
    """A step on the main thread, a second thread, a kernel, a collective and a copy on two streams."""
    builder.annotate("ProfilerStep#0", 100, 900)
    builder.op("aten::mm", 200, 100)
    builder.launch("gemm", 210, 400, 50)
    builder.launch("ncclDevKernel_AllReduce", 320, 460, 40, stream=20)
    builder.launch("Memcpy HtoD (Pageable -> Device)", 330, 500, 7.5, cat="gpu_memcpy")
    builder.op("aten::index", 600, 30, tid=200)
    rank_trace: RankTrace = builder.read()
    return rank_trace


def test_tracks_are_streams_then_threads(trace: RankTrace) -> None:
    view = view_trace(trace)

    assert [(track.name, track.is_device, track.num_rows) for track in view.tracks] == [
        ("stream 7", True, 1),
        ("stream 20", True, 1),
        ("thread 100", False, 3),
        ("thread 200", False, 1),
    ]
    assert view.tracks[0].process == "device 0"
    assert (view.tracks[2].pid, view.tracks[2].tid) == ("100", "100")


def test_times_are_since_the_start_of_the_span(trace: RankTrace) -> None:
    view = view_trace(trace)
    mm = by_name(view, "aten::mm")

    assert view.origin_ns == 100_000
    assert (mm["start_ns"], mm["dur_ns"], mm["row"]) == (100_000, 100_000, 1)
    assert by_name(view, "ProfilerStep#0")["start_ns"] == 0
    assert [(step.name, step.start_ns, step.end_ns) for step in view.steps] == [
        ("ProfilerStep#0", 0, 900_000)
    ]


def test_device_work_names_the_call_that_launched_it(trace: RankTrace) -> None:
    slices = decoded(view_trace(trace))
    sources = {one["name"]: slices[one["source"]] for one in slices if one["source"] >= 0}

    assert {name: (call["name"], call["start_ns"]) for name, call in sources.items()} == {
        "gemm": ("cudaLaunchKernel", 110_000),
        "ncclDevKernel_AllReduce": ("cudaLaunchKernel", 220_000),
        "Memcpy HtoD (Pageable -> Device)": ("cudaMemcpyAsync", 230_000),
    }


def test_communication_is_a_kind_of_its_own(trace: RankTrace) -> None:
    view = view_trace(trace)

    assert by_name(view, "ncclDevKernel_AllReduce")["kind"] == "communication"
    assert by_name(view, "gemm")["kind"] == "kernel"


def test_calls_are_the_call_tree(trace: RankTrace) -> None:
    view, tree = view_trace(trace), call_tree(trace)

    assert [view.names[name] for name in view.calls.name] == tree["name"].to_list()
    assert [view.kinds[kind] for kind in view.calls.kind] == tree["kind"].to_list()
    assert view.calls.parent == tree["parent"].fill_null(-1).to_list()
    assert view.calls.total_ns == tree["total_ns"].to_list()
    assert view.calls.device_self_ns == tree["device_self_ns"].to_list()


def test_short_slices_are_merged_and_counted(builder: Any) -> None:
    builder.op("aten::long", 0, 1000)
    for i in range(50):
        builder.op("aten::short", 2000 + 2 * i, 1)
    builder.op("aten::other", 2100, 1)
    view = view_trace(builder.read(), max_slices=10)
    slices = decoded(view)

    assert (len(slices), view.num_slices) == (2, 52)
    assert slices[0]["name"] == "aten::long"
    assert slices[1] | {"track": 0} == {
        "track": 0,
        "row": 0,
        "start_ns": 2_000_000,
        "dur_ns": 101_000,
        "name": "(small)",
        "kind": "cpu_op",
        "num_events": 51,
        "busy_ns": 51_000,
        "source": -1,
    }
    assert view.notice == "52 slices; neighbours of up to 1.00 µs are drawn together, 51 of them as 1"


def test_equal_neighbours_keep_their_name(builder: Any) -> None:
    builder.op("aten::long", 0, 1000)
    for i in range(50):
        builder.op("aten::short", 2000 + 2 * i, 1)

    merged = decoded(view_trace(builder.read(), max_slices=10))[1]
    assert (merged["name"], merged["num_events"]) == ("aten::short", 50)


def test_launches_lead_to_merged_calls(builder: Any) -> None:
    builder.op("aten::long", 0, 1000)
    for i in range(40):
        builder.launch("gemm", 2000 + 6 * i, 9000 + 900 * i, 800)
    slices = decoded(view_trace(builder.read(), max_slices=45))

    kernels = [one for one in slices if one["name"] == "gemm"]
    assert len(kernels) == 40
    assert {slices[kernel["source"]]["name"] for kernel in kernels} == {"cudaLaunchKernel"}
    assert {slices[kernel["source"]]["num_events"] for kernel in kernels} == {40}


@pytest.mark.parametrize("text", ["", "</script><img onerror=alert(1)>", "名" * 1000, "a" * 5000])
def test_odd_names(builder: Any, text: str) -> None:
    builder.op(text, 0, 10)
    view = from_json(TraceView, to_json(view_trace(builder.read())))

    (found,) = decoded(view)
    assert len(found["name"]) <= 400
    assert found["name"][:20] == text[:20]


def test_a_trace_without_slices(builder: Any) -> None:
    builder.add("cpu_instant_event", "[memory]", 1, 0)
    view = view_trace(builder.read())

    assert (view.num_slices, view.tracks, view.slices.label, view.notice) == (0, [], [], None)
    assert view.calls.total_ns == [0]


def test_a_limit_below_one_is_refused(builder: Any) -> None:
    builder.op("aten::mm", 0, 10)
    with pytest.raises(InputError, match="max_slices=0"):
        view_trace(builder.read(), max_slices=0)


def test_small_calls_are_put_together_with_exact_sums(builder: Any) -> None:
    for i in range(300):
        builder.op(f"aten::op{i}", 100 * i, 1 + i % 90)
    trace = builder.read()
    rows = find_calls(trace, most=50)

    assert 10 < rows.height <= 50
    assert rows["self_ns"].sum() == call_tree(trace)["self_ns"].sum()
    assert rows["total_ns"][0] == call_tree(trace)["total_ns"][0]


@given(data=st.data(), limit=st.integers(1, 60))
def test_any_trace(data: st.DataObject, limit: int, generated: Any, tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    trace = read_trace(path).ranks[0]
    placed = place_slices(trace)
    whole, view = decoded(view_trace(trace)), view_trace(trace, max_slices=limit)
    merged = decoded(view)

    assert len(whole) == view.num_slices == placed.height
    assert sum(one["dur_ns"] for one in whole) == placed["dur_ns"].sum()
    assert sorted(one["start_ns"] for one in whole) == sorted(
        (placed["start_ns"] - trace.activity.start_ns).to_list()
    )
    assert sum(one["num_events"] for one in merged) == placed.height
    assert sum(one.get("busy_ns", one["dur_ns"]) for one in merged) == placed["dur_ns"].sum()
    for lane in {(one["track"], one["row"]) for one in merged}:
        own = [one for one in merged if (one["track"], one["row"]) == lane]
        ends = np.array([one["start_ns"] + one["dur_ns"] for one in own])
        assert (ends[:-1] <= np.array([one["start_ns"] for one in own])[1:]).all()


def test_real_traces(real_trace: Path) -> None:
    trace = read_trace(real_trace).ranks[0]
    view = view_trace(trace, max_slices=5000)
    slices = decoded(view)

    assert len(slices) <= 5000
    assert sum(one["num_events"] for one in slices) == view.num_slices
    assert all(0 <= one["track"] < len(view.tracks) for one in slices)
    assert all(one["row"] < view.tracks[one["track"]].num_rows for one in slices)
    assert len(view.calls.parent) <= 12_000
    assert view.calls.total_ns[0] == call_tree(trace)["total_ns"][0]
