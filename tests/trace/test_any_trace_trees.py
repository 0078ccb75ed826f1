"""Operators, call tree, timeline, phases, modules, lines and memory on any trace: no crash, and sums that hold."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.record import to_json
from pyrometer.trace.analysis.call_tree import call_tree
from pyrometer.trace.analysis.memory import memory
from pyrometer.trace.analysis.modules import modules
from pyrometer.trace.analysis.operators import KEYS, operators
from pyrometer.trace.analysis.phases import phases
from pyrometer.trace.analysis.timeline import timeline
from pyrometer.trace.analysis.user_lines import user_lines
from pyrometer.trace.export.folded import folded_stacks
from pyrometer.trace.export.speedscope import speedscope
from pyrometer.trace.kinds import HOST
from pyrometer.trace.program.rollup import gather_into
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.timing.innermost import innermost
from pyrometer.trace.trace import RankTrace

ALL = [call_tree, memory, modules, operators, phases, timeline, user_lines, folded_stacks, speedscope]


@given(data=st.data())
def test_sums_hold_on_any_trace(generated, tmp_path, data):
    path = tmp_path / "any.json"
    path.write_text(data.draw(generated.traces()), encoding="utf-8")
    check(read_trace(path).ranks[0])


def test_sums_hold_on_real_traces(real_trace):
    check(read_trace(real_trace).ranks[0])


@pytest.mark.parametrize("analysis", ALL)
def test_an_empty_trace_gives_an_empty_result(builder, analysis):
    analysis(builder.read())


def check(trace: RankTrace) -> None:
    host = trace.of_kind(*HOST)
    work = trace.device_work
    operators_part_the_time_below_them(trace, host, work)
    the_tree_holds_everything(trace, host, work)
    slices_never_overlap(trace)
    folded_stacks_sum_to_the_tree(trace)
    speedscope_nests(trace)
    phases_stay_within_the_span(trace)
    pieces_are_self_times(trace, host)
    assert modules(trace)["host_self_ns"].sum() <= host["self_ns"].sum()
    assert user_lines(trace)["self_ns"].sum() <= host["self_ns"].sum()
    for device in memory(trace).devices:
        assert max(device.timeline.allocated_bytes) == device.peak_bytes
        assert not device.at_peak_bytes or sum(device.at_peak_bytes.values()) == device.peak_bytes
    msgspec.json.decode(to_json(memory(trace)))


def operators_part_the_time_below_them(trace: RankTrace, host: pl.DataFrame, work: pl.DataFrame) -> None:
    below = host.filter(pl.col("op").is_not_null())
    launched = work.filter(pl.col("op").is_not_null())
    marks = trace.of_kind("cpu_op").filter(pl.col("name").str.contains("^ProfilerStep"))
    for by in KEYS:
        rows = operators(trace, by=by)
        if marks.is_empty():
            assert rows["host_self_ns"].sum() == below["self_ns"].sum()
            assert rows["device_self_ns"].sum() == launched["dur_ns"].sum()
        assert rows["calls"].sum() == trace.of_kind("cpu_op").height - marks.height
        assert (rows["forward_ns"] + rows["backward_ns"] == rows["host_self_ns"]).all()
        device = rows["forward_device_ns"] + rows["backward_device_ns"]
        assert (device == rows["device_self_ns"]).all()
        assert (rows["device_total_ns"] >= 0).all()


def the_tree_holds_everything(trace: RankTrace, host: pl.DataFrame, work: pl.DataFrame) -> None:
    for share in (0.0, 0.02, 1.0):
        tree = call_tree(trace, min_share=share)
        assert tree["self_ns"].sum() == tree["total_ns"][0] == host["self_ns"].sum()
        assert tree["device_self_ns"].sum() == tree["device_ns"][0] == work["dur_ns"].sum()
        below = (
            tree.drop_nulls("parent")
            .group_by(node="parent")
            .agg(children=pl.col("total_ns").sum(), launched=pl.col("device_ns").sum())
        )
        both = tree.join(below, on="node", how="left").with_columns(
            pl.col("children", "launched").fill_null(0)
        )
        assert (both["total_ns"] == both["self_ns"] + both["children"]).all()
        assert (both["device_ns"] == both["device_self_ns"] + both["launched"]).all()
    assert call_tree(trace)["calls"].sum() == host.height + work.height


def slices_never_overlap(trace: RankTrace) -> None:
    whole = timeline(trace)
    for limit in (None, 40, 5):
        rows = timeline(trace, limit=limit)
        assert rows["num_events"].sum() == whole.height
        line = rows.sort("track", "lane", "start_ns", "dur_ns")
        ended = line["start_ns"] + line["dur_ns"]
        same = (line["track"] == line["track"].shift(1)) & (line["lane"] == line["lane"].shift(1))
        assert not (same & (line["start_ns"] < ended.shift(1))).any()


def folded_stacks_sum_to_the_tree(trace: RankTrace) -> None:
    tree = call_tree(trace)
    for weight, total in (("host", tree["total_ns"][0]), ("device", tree["device_ns"][0])):
        lines = folded_stacks(trace, weight).splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == total
        assert all(int(line.rsplit(" ", 1)[1]) > 0 for line in lines)


def speedscope_nests(trace: RankTrace) -> None:
    found = speedscope(trace)
    opened = 0
    for profile in found["profiles"]:
        stack: list[int] = []
        clock = profile["startValue"]
        for event in profile["events"]:
            assert clock <= event["at"] <= profile["endValue"]
            clock = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
                opened += 1
            else:
                assert stack.pop() == event["frame"]
        assert not stack
    assert opened == timeline(trace).height


def phases_stay_within_the_span(trace: RankTrace) -> None:
    found = phases(trace)
    assert 0 <= found.other_ns <= trace.activity.span_ns
    assert sum(phase.device_ns for phase in found.phases) + found.other_device_ns == sum(
        trace.device_work["dur_ns"]
    )
    for step in found.steps:
        assert step.other_ns >= 0
        assert all(0 <= ns <= step.dur_ns for ns in step.host_ns.values())
        assert step.other_ns + sum(step.host_ns.values()) >= step.dur_ns


def pieces_are_self_times(trace: RankTrace, host: pl.DataFrame) -> None:
    pieces = innermost(trace)
    own = gather_into(trace.events["self_ns"].to_numpy() * 0, pieces.event, pieces.end - pieces.start)
    assert own.sum() == host["self_ns"].sum()
