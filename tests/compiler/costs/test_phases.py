"""Own time per phase, from begin and end events with every flaw that they come with."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pyrometer.compiler.costs.cost import read_cost
from pyrometer.compiler.costs.phase_names import ORDER, PHASES, phase_named
from pyrometer.compiler.log import CompileLog

FRAME, BACKWARD = "entire_frame_compile", "entire_backward_compile"


def approx(expected):
    return pytest.approx(expected, abs=2e-6)  # a float of microseconds since 1970 holds a quarter of one


def test_a_phase_owns_its_time_without_the_phases_inside(build):
    build.begin(FRAME, 0).begin("backend_compile", 1).begin("GraphLowering.run", 2)
    build.end("GraphLowering.run", 5).end("backend_compile", 9).end(FRAME, 10)
    assert read_cost(build.log()).phases_s == approx(
        {"Dynamo tracing": 2, "backend": 5, "Inductor lowering": 3}
    )


def test_phases_add_up_to_compile_time_and_come_in_the_order_of_compiling(build):
    build.begin(FRAME, 0).span("build_guards", 1, 2).span("bytecode_tracing", 2, 4).span("gc", 4, 4.5).end(
        FRAME, 10
    )
    cost = read_cost(build.log())
    assert cost.compile_s == approx(10)
    assert sum(cost.phases_s.values()) == approx(cost.compile_s)
    assert list(cost.phases_s) == ["Dynamo tracing", "guards", "garbage collection"]


def test_threads_that_compile_beside_the_program_are_set_apart(build):
    build.begin(FRAME, 0).begin("async_compile.wait", 2)
    for thread in (7, 8):
        build.begin("compile_file", 2, compile_id="None", thread=thread)
    for thread in (8, 7):
        build.end("compile_file", 6, compile_id="None", thread=thread)
    build.end("async_compile.wait", 6).end(FRAME, 7)
    cost = read_cost(build.log())
    assert cost.phases_s == approx({"Dynamo tracing": 3, "waiting for compile threads": 4})
    assert cost.background_s == approx({"C++/Triton compile": 8})


def test_a_log_that_does_not_tell_threads_keeps_compile_threads_apart_too(build):
    build.begin(FRAME, 0).begin("async_compile.wait", 2)
    build.begin("compile_file", 2, compile_id="None").begin("compile_file", 3, compile_id="None")
    build.end("compile_file", 5, compile_id="None").end("compile_file", 6, compile_id="None")
    build.end("async_compile.wait", 6).end(FRAME, 7)
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 3, "waiting for compile threads": 4})
    assert read_cost(build.log()).background_s == approx({"C++/Triton compile": 4})


def test_what_the_program_compiles_itself_is_part_of_its_phases(build):
    build.begin(FRAME, 0).span("compile_file", 1, 3).end(FRAME, 4)
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 2, "C++/Triton compile": 2})
    assert read_cost(build.log()).background_s == {}


def test_interleaved_threads_do_not_end_each_other(build):
    build.begin(FRAME, 0, compile_id="0/0", thread=1).begin(FRAME, 1, compile_id="1/0", thread=2)
    build.end(FRAME, 5, compile_id="0/0", thread=1).end(FRAME, 9, compile_id="1/0", thread=2)
    assert read_cost(build.log()).compile_s == approx(5 + 8)  # each of the two callers waited


def test_callers_that_a_file_does_not_tell_apart_wait_once_at_a_time(build):
    build.begin(FRAME, 0, compile_id="0/0").begin(FRAME, 1, compile_id="1/0").begin(
        "build_guards", 6, compile_id="1/0"
    )
    build.end("build_guards", 7, compile_id="1/0").end(FRAME, 5, compile_id="0/0").end(
        FRAME, 9, compile_id="1/0"
    )
    cost = read_cost(build.in_time())
    assert cost.compile_s == approx(9)
    assert cost.phases_s == approx({"Dynamo tracing": 8, "guards": 1})


def test_an_end_without_a_beginning_is_left_out(build):
    build.end("dynamo", 0.5).begin(FRAME, 1).end("bytecode_tracing", 2).end(FRAME, 3).end("dynamo", 4)
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 2})


def test_a_lost_end_ends_with_what_is_around_it(build):
    build.begin(FRAME, 0).begin("backend_compile", 1).begin("GraphLowering.run", 2).end(
        "backend_compile", 4
    ).end(FRAME, 5)
    assert read_cost(build.log()).phases_s == approx(
        {"Dynamo tracing": 2, "backend": 1, "Inductor lowering": 2}
    )


def test_an_end_that_another_thread_makes_is_found_by_its_name_and_compilation(build):
    build.begin(FRAME, 0, thread=1).begin(FRAME, 1, thread=2, compile_id="1/0")
    build.end(FRAME, 4, thread=3).end(FRAME, 6, thread=2, compile_id="1/0")
    assert read_cost(build.log()).compile_s == approx(4 + 5)


def test_what_is_still_going_on_counts_until_it_was_last_heard_of(build):
    build.begin(FRAME, 0).begin("backend_compile", 1).span("build_guards", 2, 3)
    build.span(FRAME, 100, 101, compile_id="1/0")
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 2, "backend": 1, "guards": 1})


def test_attempts_after_a_break_count_as_tracing(build):
    build.begin(FRAME, 0).span("compile_attempt_0", 1, 3).span("compile_attempt_1", 3, 6).end(FRAME, 7)
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 7})


def test_a_compilation_inside_another_counts_once(build):
    build.begin(FRAME, 0).begin(FRAME, 2, compile_id="1/0").end(FRAME, 5, compile_id="1/0").end(FRAME, 6)
    assert read_cost(build.log()).compile_s == approx(6)


def test_the_first_backward_is_waited_for_wherever_it_runs(build):
    build.span(FRAME, 0, 2, thread=1).span(BACKWARD, 5, 8, thread=9)
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 2, "AOTAutograd": 3})


def test_tuning_at_the_first_run_is_waited_for(build):
    build.span(FRAME, 0, 2).span("CachingAutotuner.benchmark_all_configs", 3, 7).span(
        "CUDAGraphNode.record", 8, 9
    )
    assert read_cost(build.log()).phases_s == approx(
        {"Dynamo tracing": 2, "autotuning": 4, "CUDA graph recording": 1}
    )


def test_passes_own_whatever_runs_inside_of_them(build):
    build.begin(FRAME, 0).begin("_recursive_joint_graph_passes", 1).span("aot_trace_joint_graph", 2, 4)
    build.span("pass.joint_graph_passes.remove_noop_ops", 4, 5).end("_recursive_joint_graph_passes", 6).end(
        FRAME, 7
    )
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 2, "joint-graph passes": 5})


def test_names_that_nobody_knows_are_other(build):
    build.begin(FRAME, 0).span("quantum_annealing", 1, 3).end(FRAME, 4)
    assert read_cost(build.log()).phases_s == approx({"Dynamo tracing": 2, "other": 2})


def test_a_clock_that_is_set_back_takes_nothing_away(build):
    build.begin(FRAME, 5).begin("build_guards", 6).end("build_guards", 2).end(FRAME, 4)
    assert read_cost(build.log()).phases_s == {}
    assert read_cost(build.log()).compile_s == 0.0


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "{",
        "[]",
        "3",
        '{"ph": "B"}',
        '{"ph": "B", "name": 3, "ts": 1}',
        '{"ph": "E", "name": "x", "ts": "now"}',
        '{"ph": "B", "name": "gc", "ts": NaN}',
    ],
)
def test_odd_events_are_left_out(build, payload):
    build.span(FRAME, 0, 2)
    odd = replace(build.entries[0], payload=payload)
    assert read_cost(CompileLog((odd, *build.entries, odd))).phases_s == approx({"Dynamo tracing": 2})


def test_events_need_no_arguments(build):
    build.span(FRAME, 0, 2)
    bare = tuple(
        replace(entry, payload=json.dumps({**json.loads(entry.payload), "args": None}), compile_id=None)
        for entry in build.entries
    )
    assert read_cost(CompileLog(bare)).phases_s == approx({"Dynamo tracing": 2})


def test_nothing_was_compiled():
    cost = read_cost(CompileLog(()))
    assert cost.phases_s == cost.background_s == {}


def test_every_name_belongs_to_one_phase():
    patterns = [pattern for patterns in PHASES.values() for pattern in patterns]
    assert len(patterns) == len(set(patterns))
    assert ORDER[-1] == "other"
    for phase, names in PHASES.items():
        for name in names:
            assert phase_named(name.replace("*", "x")) == phase
