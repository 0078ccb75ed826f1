"""What must hold of phases for any log: they add up, none is negative, and nothing raises."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.caches import read_cache
from pyrometer.compiler.costs.code import read_code, read_origins
from pyrometer.compiler.costs.compilations import read_compilations
from pyrometer.compiler.costs.cost import read_cost
from pyrometer.compiler.costs.passes import read_passes
from pyrometer.compiler.log import CompileLog, LogEntry

NAMES = [
    "entire_frame_compile",
    "entire_backward_compile",
    "compile_file",
    "gc",
    "pass.joint_graph_passes.a",
    "dynamo",
    "?",
]
IDS = [CompileId(0, None, 0, 0), CompileId(0, None, 1, 0), CompileId(1, None, 0, 0), None]
ZERO_US = 1.7e15

events = st.builds(
    lambda phase, name, at, own, thread: LogEntry(
        "chromium_event",
        {},
        json.dumps(
            {
                "ph": phase,
                "name": name,
                "ts": ZERO_US + at,
                "args": {"compile_id": own.text if own else "None"},
            }
        ),
        own,
        0,
        int(ZERO_US + at) * 1000,
        thread,
    ),
    st.sampled_from("BBEEi"),
    st.sampled_from(NAMES),
    st.integers(0, 50),
    st.sampled_from(IDS),
    st.integers(1, 3),
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KINDS = [
    "chromium_event", "compilation_metrics", "bwd_compilation_metrics", "fx_graph_cache_miss", "aotautograd_cache_hit",
    "fx_graph_cache_bypass", "inductor_output_code", "inductor_provenance_tracking_node_mappings",
    "inductor_provenance_tracking_kernel_stack_traces", "pyrometer.pass", "dynamo_start", "dynamo_output_graph", "new",
]  # fmt: skip
KEYS = [
    "start_time_us", "duration_us", "end_time_us", "structured_logging_overhead_us", "graph_op_count", "fail_type",
    "co_name", "co_firstlineno", "components", "key", "time_saved_ns", "cppCodeToPost", "stack", "seconds", "created", "args", "name", "ph", "ts",
]  # fmt: skip
contents = st.dictionaries(st.sampled_from(KEYS), anything, max_size=6) | anything
odd_entries = st.builds(
    LogEntry,
    st.sampled_from(KINDS),
    contents,
    st.text(max_size=20) | contents.map(json.dumps),
    st.sampled_from(IDS),
)


@given(st.lists(events, max_size=40))
def test_phases_of_any_events_add_up_and_are_never_negative(entries):
    log = CompileLog(tuple(entries))
    cost = read_cost(log)
    assert all(own_s >= 0 for own_s in cost.phases_s.values())
    assert math.isclose(sum(cost.phases_s.values()), cost.compile_s, abs_tol=1e-12)
    compilations = [compilation for compilation in read_compilations(log) if compilation.total_s is not None]
    assert sum(compilation.total_s for compilation in compilations) <= cost.compile_s + 1e-12
    for compilation in compilations:
        assert math.isclose(sum(compilation.phases_s.values()), compilation.total_s, abs_tol=1e-12)


@given(st.lists(events, max_size=40))
def test_a_thread_never_waits_longer_than_its_events_last(entries):
    log = CompileLog(tuple(entries))
    last_s = {
        thread: max(entry.time_ns for entry in entries if entry.thread == thread)
        - min(entry.time_ns for entry in entries if entry.thread == thread)
        for thread in {entry.thread for entry in entries}
    }
    # an end may come from another thread, so that the whole log is the bound of each
    whole_ns = max((entry.time_ns for entry in entries), default=0) - min(
        (entry.time_ns for entry in entries), default=0
    )
    assert read_cost(log).compile_s <= len(last_s) * whole_ns / 1e9 + 1e-9


@given(st.lists(odd_entries | events, max_size=12))
def test_no_reader_raises_on_odd_entries(entries):
    log = CompileLog(tuple(entries))
    for read in (read_compilations, read_cost, read_passes, read_cache, read_code, read_origins):
        read(log)
