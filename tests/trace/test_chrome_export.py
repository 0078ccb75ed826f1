"""An exported trace can be read back as it was; what was added to it lies on tracks of its own; nothing overlaps."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.trace.analysis.breakdown import breakdown
from pyrometer.trace.export.chrome import Window, export_chrome
from pyrometer.trace.export.counter_tracks import counter_series
from pyrometer.trace.export.highlights import CRITICAL, Highlight
from pyrometer.trace.export.lanes import find_lanes
from pyrometer.trace.export.tables import export_table
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import Trace

ODD_NAMES = ['quote " \\ back', "new\nline", "ünïcode → 漢字", "</script>", "", "tab\t"]


@pytest.fixture
def program(builder):
    """Two steps with launches, copies, allocations, flows and a counter."""
    builder.head["distributedInfo"] = {"rank": 3, "world_size": 8, "backend": "nccl"}
    builder.head["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100", "numSms": 108, "computeMajor": 8}]
    builder.head["record_shapes"] = 1
    builder.events.append(
        {"ph": "M", "name": "process_name", "pid": 100, "ts": 0, "args": {"name": "python"}}
    )
    builder.events.append(
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0, "args": {"name": "stream 7"}}
    )
    for i in range(2):
        at = i * 100.0 + 0.123
        builder.annotate(f"ProfilerStep#{i}", at, 99.5)
        builder.op(
            "aten::mm", at + 10, 30.001, **{"Input Dims": [[2, 3], []], "Concrete Inputs": ["", 'a"b']}
        )
        builder.launch("gemm", at + 20, at + 40, 25, grid=[1, 2, 3], **{"est. achieved occupancy %": 37.5})
        builder.launch("Memcpy HtoD (x)", at + 60, at + 70, 5, cat="gpu_memcpy", bytes=5000)
        memory = {"Bytes": 512, "Total Allocated": 512 * (i + 1), "Device Type": 1, "Device Id": 0}
        builder.events.append(
            {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 100}
            | {"ts": at + 11, "args": memory}
        )
        for ph in "sf":
            builder.events.append(
                {"ph": ph, "id": i, "cat": "ac2g", "name": "ac2g", "pid": 100, "tid": 100, "ts": at + 20}
            )
    builder.events.append(
        {"ph": "C", "name": "power", "pid": "GPU", "tid": 0, "ts": 5, "args": {"watts": 300.5}}
    )
    builder.add("future_category", "odd", 1, 2, anything=[1, {"x": None}])
    return builder


def tables_of(trace):
    """Tables that do not depend on the numbering of tracks."""
    return {name: comparable(trace, table) for name, table in trace.tables.items() if name != "tracks"}


def comparable(trace, table):
    if "track" in table.columns:
        places = trace.tracks.select("track", "pid", "tid", "thread_name")
        return comparable(
            trace, table.join(places, on="track", how="left", maintain_order="left").drop("track")
        )
    texts = {
        column: pl.Series([json.dumps(json.loads(text)) for text in table[column].to_list()], dtype=pl.String)
        for column in ("args", "values")
        if column in table.columns
    }
    return table.with_columns(**texts)


def exported(trace, path, **options):
    export_chrome(trace, path, **options)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(text, parse_float=Decimal)  # absolute times do not fit a float


def bare(trace, path):
    """Exported without additions, and read back."""
    exported(trace, path, counters=False, critical_path=False)
    return read_trace(path).ranks[0]


def assert_same(trace, back):
    assert breakdown(back) == breakdown(trace)
    before, after = tables_of(trace), tables_of(back)
    for name, table in before.items():
        assert after[name].equals(table), name


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_it_can_be_read_back_as_it_was(program, tmp_path, name):
    trace = program.read()
    back = bare(trace, tmp_path / name)
    assert_same(trace, back)
    for field in ("rank", "world_size", "backend", "base_ns", "devices", "options", "rank_from"):
        assert getattr(back.info, field) == getattr(trace.info, field)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["cpu_op", "user_annotation", "kernel", "gpu_memcpy", "python_function", "overhead"]
            ),
            st.sampled_from([*ODD_NAMES, "aten::mm"]),
            st.integers(0, 10**9),
            st.integers(0, 10**6),
        ),
        max_size=25,
    ),
    st.sampled_from([None, 1_700_000_000_000_000_000]),
)
def test_any_trace_can_be_read_back_as_it_was(new_builder, tmp_path, events, base_ns):
    builder = new_builder(tmp_path, base_ns=base_ns)
    shift = 0 if base_ns else 1_712_170_290_183_634
    for cat, name, start, dur in events:
        at = start / 1000 if base_ns else shift + start // 1000
        if cat in {"kernel", "gpu_memcpy"}:
            builder.device(cat, name, at, dur / 1000)
        else:
            builder.add(cat, name, at, dur / 1000)
    trace = builder.read()
    back = bare(trace, tmp_path / "out.json")
    if not back.tracks["thread_name"].str.contains("overlapping").any():
        assert breakdown(back).parts == breakdown(trace).parts
    before, after = tables_of(trace)["events"].drop("tid", "thread_name"), tables_of(back)["events"]
    assert after.drop("tid", "thread_name").equals(before)


def test_large_times_keep_their_nanoseconds(new_builder, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(
        '{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1712170290183634.593,"dur":0.007}]}'
    )
    export_chrome(read_trace(path), tmp_path / "b.json", counters=False, critical_path=False)
    assert '"ts":1712170290183634.593' in (tmp_path / "b.json").read_text()
    assert read_trace(tmp_path / "b.json").events["start_ns"].to_list() == [1_712_170_290_183_634_593]


def overlaps(document):
    """Slices of one lane that overlap without nesting."""
    lanes = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            lanes[event["pid"], event["tid"]].append((start, -(start + round(event["dur"] * 1000))))
    found = []
    for slices in lanes.values():
        stack = []
        for start, end in sorted(slices):
            while stack and stack[-1] <= start:
                stack.pop()
            if stack and -end > stack[-1]:
                found.append((start, -end))
            stack.append(-end)
    return found


def test_what_overlaps_moves_to_a_lane_of_its_own(builder, tmp_path):
    builder.launch("first", 0, 10, 20)
    builder.launch("second", 2, 25, 20)
    builder.launch("third", 4, 28, 20)
    builder.annotate("outer", 50, 30)
    builder.annotate("crossing", 60, 30)
    trace = builder.read()
    document = exported(trace, tmp_path / "out.json")
    assert overlaps(document) == []
    where = {
        e["name"]: e["tid"] for e in document["traceEvents"] if e.get("cat") in {"kernel", "user_annotation"}
    }
    assert where == {
        "first": 7,
        "second": "7 lane 1",
        "third": "7 lane 2",
        "outer": 100,
        "crossing": "100 lane 1",
    }
    labels = {e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    assert "7, overlapping 1" in labels
    assert breakdown(read_trace(tmp_path / "out.json").ranks[0]).parts == breakdown(trace).parts


INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 20)), max_size=40)


@given(INTERVALS)
def test_on_each_lane_slices_nest(intervals):
    ordered = sorted(intervals, key=lambda interval: (interval[1], -interval[2]))
    track, start, dur = (
        (np.array(column, np.int64) for column in zip(*ordered, strict=True))
        if ordered
        else [np.zeros(0, np.int64)] * 3
    )
    lane = find_lanes(track, start, start + dur)
    for one in set(zip(track.tolist(), lane.tolist(), strict=True)):
        stack = []
        for i in np.flatnonzero((track == one[0]) & (lane == one[1])).tolist():
            while stack and stack[-1] <= start[i]:
                stack.pop()
            assert not stack or start[i] + dur[i] <= stack[-1]
            stack.append(start[i] + dur[i])


@given(INTERVALS)
def test_what_nests_stays_on_its_track(intervals):
    """The first slice of each track never moves, nor do slices that follow one another."""
    at, following = 0, []
    for _, gap, dur in intervals:
        following.append((at + gap, at + gap + dur))
        at += gap + dur
    start, end = (
        (np.array(column, np.int64) for column in zip(*following, strict=True))
        if following
        else [np.zeros(0, np.int64)] * 2
    )
    assert not find_lanes(np.zeros(len(start), np.int64), start, end).any()


def test_series_and_the_critical_path_lie_on_a_process_of_their_own(program, tmp_path):
    document = exported(program.read(), tmp_path / "out.json")
    added = [event for event in document["traceEvents"] if event["pid"] == "pyrometer"]
    assert {event["name"] for event in added if event["ph"] == "C"} == {
        "queue of stream 7 on device 0",
        "device 0 busy",
        "H2D bandwidth",
        "memory allocated on device 0",
    }
    path = [event for event in added if event.get("tid") == CRITICAL]
    assert path
    assert overlaps(document) == []


def test_series_have_their_known_values(program):
    series = {column.name: column for column in counter_series(program.read())}
    queue = series["queue of stream 7 on device 0"]
    assert queue.at_ns.tolist() == [20_123, 40_123, 60_123, 70_123, 120_123, 140_123, 160_123, 170_123]
    assert queue.value.tolist() == [1, 0] * 4
    copies = series["H2D bandwidth"]
    assert copies.value.tolist() == [1.0, 0, 1.0, 0]  # 5000 bytes in 5 µs are 1 GB/s
    assert series["memory allocated on device 0"].value.tolist() == [512, 1024]
    assert series["device 0 busy"].value.tolist() == [1, 0] * 4


def test_highlights_are_slices_with_their_detail(program, tmp_path):
    marks = [
        Highlight(name="PYR101: copies", start_ns=1000, end_ns=50_000, detail={"cost_ms": 1.5}),
        Highlight(name="PYR102: gaps", start_ns=20_000, end_ns=90_000),
    ]
    document = exported(program.read(), tmp_path / "out.json", critical_path=False, highlights=marks)
    drawn = {e["tid"]: e for e in document["traceEvents"] if e["ph"] == "X" and e["pid"] == "pyrometer"}
    assert drawn["findings"]["args"] == {"cost_ms": 1.5}
    assert drawn["findings 2"]["name"] == "PYR102: gaps"


def test_a_window_keeps_what_overlaps_it_whole(program, tmp_path):
    window = Window(start_ns=100_000, end_ns=150_000)
    document = exported(program.read(), tmp_path / "out.json", window=window)
    names = [event["name"] for event in document["traceEvents"] if event["ph"] == "X" and event["pid"] == 100]
    assert "ProfilerStep#1" in names
    assert "ProfilerStep#0" not in names
    moments = [event["ts"] for event in document["traceEvents"] if event["ph"] in "Cisf"]
    assert all(100 <= moment < 150 for moment in moments)


def test_ranks_become_processes_on_one_clock(new_builder, tmp_path):
    paths = []
    for rank in range(2):
        base = 1_700_000_000_000_000_000 + rank * 5_000_000
        builder = new_builder(tmp_path, base_ns=base, distributedInfo={"rank": rank, "world_size": 2})
        builder.op("aten::mm", 10, 5)
        paths.append(builder.write(f"{rank}.json"))
    document = exported(read_trace(paths), tmp_path / "out.json", critical_path=False)
    placed = {event["pid"]: event["ts"] for event in document["traceEvents"] if event["ph"] == "X"}
    assert placed == {"rank 0: 100": 10, "rank 1: 100": 5010}


def test_a_recorded_environment_is_not_passed_on(builder, tmp_path):
    builder.head["metadata"] = {"env": {"TOKEN": "canary-secret"}}
    builder.op("aten::mm", 0, 5)
    export_chrome(builder.read(), tmp_path / "out.json")
    assert "canary-secret" not in (tmp_path / "out.json").read_text()


def test_an_empty_trace_is_written(builder, tmp_path):
    assert exported(builder.read(), tmp_path / "out.json")["traceEvents"] == []
    assert exported(Trace(()), tmp_path / "none.json")["traceEvents"] == []


def test_a_file_that_cannot_be_written_leaves_nothing_behind(program, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        export_chrome(program.read(), tmp_path / "absent" / "out.json")
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        export_chrome(program.read(), tmp_path / "taken.json")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_tables_are_written(program, tmp_path, suffix):
    kernels = program.read().detail("kernels")
    path = tmp_path / f"kernels{suffix}"
    export_table(kernels, path)
    back = pl.read_parquet(path) if suffix == ".parquet" else pl.read_csv(path)
    assert back["start_ns"].to_list() == kernels["start_ns"].to_list()
    assert back["grid"].to_list() == ([[1, 2, 3]] * 2 if suffix == ".parquet" else ["[1,2,3]"] * 2)


def test_another_suffix_is_refused(program, tmp_path):
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        export_table(program.read().events, tmp_path / "events.xlsx")


@pytest.mark.parametrize(
    "name",
    [
        "h100_bert_small",
        "mi300_bert_small",
        "rank_unavailable",
        "tiny_diff_base",
        "triton_compile",
        "event_sync",
    ],
)
def test_published_traces_can_be_read_back_as_they_were(real_traces, tmp_path, name):
    trace = read_trace(real_traces / f"{name}.json.gz").ranks[0]
    back = bare(trace, tmp_path / "out.json")
    assert breakdown(back) == breakdown(trace)
    events = tables_of(trace)["events"].drop("tid", "thread_name")
    assert tables_of(back)["events"].drop("tid", "thread_name").equals(events)
    assert overlaps(exported(trace, tmp_path / "full.json")) == []
