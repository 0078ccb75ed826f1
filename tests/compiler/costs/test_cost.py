"""Compile time in all, what recording it took, and from which step on it has paid."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.cost import break_even_steps, read_cost
from pyrometer.compiler.log import CompileLog

FRAME, BACKWARD = "entire_frame_compile", "entire_backward_compile"
INNER_US = {
    "aot_autograd_cumulative_compile_time_us": 7_000_000,
    "joint_graph_pass_time_us": 1_000_000,
    "inductor_cumulative_compile_time_us": 5_000_000,
    "inductor_code_gen_cumulative_compile_time_us": 4_000_000,
    "triton_compile_time_us": 3_000_000,
    "gc_time_us": 500_000,
}


def approx(expected):
    return pytest.approx(expected, abs=2e-6)


def test_without_events_the_metrics_tell_how_long_and_in_which_phases(build):
    build.metrics(0, 10, **INNER_US).metrics(20, 22, kind="bwd_compilation_metrics")
    cost = read_cost(build.log())
    assert cost.compile_s == approx(12)
    assert cost.phases_s == approx(
        {
            "Dynamo tracing": 2.5,
            "backend": 1,
            "AOTAutograd": 2,
            "joint-graph passes": 1,
            "Inductor lowering": 1,
            "code generation": 1,
            "waiting for compile threads": 3,
            "garbage collection": 0.5,
        }
    )


def test_metrics_that_exceed_their_compilation_are_cut(build):
    build.metrics(0, 1, aot_autograd_cumulative_compile_time_us=5_000_000, gc_time_us=400_000)
    assert read_cost(build.log()).phases_s == approx({"backend": 0.6, "garbage collection": 0.4})


def test_metrics_of_what_the_events_tell_add_nothing(build):
    build.span(FRAME, 0, 10).metrics(0, 10, **INNER_US).metrics(11, 12, compile_id="0/1")
    cost = read_cost(build.log())
    assert cost.compile_s == approx(11)
    assert cost.phases_s == approx({"Dynamo tracing": 11})


def test_metrics_of_older_torch_tell_seconds(build):
    build.add("compilation_metrics", {"start_time": 1.7e9, "entire_frame_compile_time_s": 3.5})
    assert read_cost(build.log()).compile_s == approx(3.5)


def test_metrics_without_times_tell_nothing(build):
    build.add("compilation_metrics", {"start_time_us": 5, "co_name": "f"}).add("compilation_metrics", None)
    assert read_cost(build.log()).compile_s == 0.0


def test_recording_grows_from_a_forward_to_its_backward_and_across_resets(build):
    def told(epoch, start_s, overhead_us, kind="compilation_metrics", frame=0):
        content = {
            "start_time_us": start_s * 1e6,
            "duration_us": 5e6,
            "structured_logging_overhead_us": overhead_us,
        }
        build.add(kind, content, compile_id=CompileId(epoch, None, frame, 0))

    told(0, 0, 100_000)
    told(0, 10, 150_000, kind="bwd_compilation_metrics")
    told(0, 20, 30_000, frame=1)
    told(1, 30, 250_000)  # torch goes on counting behind a reset
    assert read_cost(build.log()).observing_s == approx(0.1 + 0.05 + 0.03 + 0.1)


def test_recording_never_took_longer_than_the_compilation(build):
    build.metrics(0, 0.2, structured_logging_overhead_us=9_000_000)
    assert read_cost(build.log()).observing_s == approx(0.2)


def test_recording_time_is_unknown_when_torch_does_not_tell(build):
    assert read_cost(build.span(FRAME, 0, 1).log()).observing_s is None


def test_measured_times_go_with_the_record():
    cost = read_cost(CompileLog(()), first_call_s=10.0, steady_s=0.5, eager_steady_s=1.0, dispatch_s=1e-5)
    assert (cost.first_call_s, cost.steady_s, cost.eager_steady_s, cost.dispatch_s) == (10.0, 0.5, 1.0, 1e-5)
    assert cost.break_even_steps == 19


@pytest.mark.parametrize(
    ("first", "steady", "eager"),
    [
        (10, 1, 1),
        (10, 2, 1),
        (0.1, 2, 1),
        (None, 1, 2),
        (10, None, 2),
        (10, 1, None),
        (math.inf, 1, 2),
        (10, 1, math.nan),
    ],
)
def test_compiling_never_pays_when_no_step_is_faster_or_something_is_unknown(first, steady, eager):
    assert break_even_steps(first, steady, eager) is None


@given(st.integers(0, 10_000), st.integers(0, 100), st.integers(1, 50))
def test_break_even_is_the_first_step_after_which_the_sum_is_not_larger(first, steady, gain):
    eager = steady + gain
    paid = next(n for n in range(1, 20_000) if first + (n - 1) * steady <= n * eager)
    assert break_even_steps(first / 1000, steady / 1000, eager / 1000) == paid
