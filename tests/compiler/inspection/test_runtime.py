from __future__ import annotations

import json
from typing import Any

import pytest

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.record import Compilation
from pyrometer.compiler.inspection.record import GraphRuntime, Runtime
from pyrometer.compiler.inspection.running import Plan
from pyrometer.compiler.inspection.runtime import (
    Profiled,
    Savings,
    graph_keys,
    middle_recording,
    read_runtime,
)
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.private.profile_regions import Region, Regions


def profiled(by_id: dict[str, Region], num_steps: int = 10, **settings: Any) -> Profiled:
    given: dict[str, Any] = {"backward_by_key": {}, "lookup_s": None, "wrapper_s": None} | settings
    return Profiled(num_steps, Regions(by_id, **given))


def compilation(compile_id: str, total_s: float | None = 2.0, outcome: str = "compiled") -> Compilation:
    return Compilation(
        compile_id=compile_id, function="f", file="m.py", line=1, outcome=outcome, total_s=total_s
    )


def log_of(*ids: CompileId, keys: dict[str, CompileId] | None = None) -> CompileLog:
    entries = [LogEntry("dynamo_output_graph", {}, compile_id=compile_id) for compile_id in ids]
    entries += [
        LogEntry("fx_graph_cache_miss", {}, json.dumps({"key": key}), compile_id=owner)
        for key, owner in (keys or {}).items()
    ]
    return CompileLog(tuple(entries))


FIRST, SECOND = CompileId(0, None, 0, 0), CompileId(0, None, 0, 1)


def runtime(savings: Savings | None = None, took: float | None = 2.0) -> dict[str, GraphRuntime]:
    regions = {"0/0": Region([0.03] * 30), "0/1": Region([0.01] * 10)}
    found = read_runtime(
        profiled(regions),
        log_of(FIRST, SECOND),
        [compilation("0/0", took), compilation("0/1", took), compilation("1/0", took)],
        savings,
    )
    return {graph.compile_id: graph for graph in found.graphs}


def test_shares_calls_and_means():
    graphs = runtime()

    assert list(graphs) == ["0/0", "0/1", "1/0"]
    assert graphs["0/0"].share == pytest.approx(0.9)
    assert graphs["0/0"].calls_per_step == 3
    assert graphs["0/0"].mean_s == pytest.approx(0.03)
    assert graphs["0/0"].compile_s == 2.0


def test_what_a_step_spares_is_shared_by_time():
    # 10 ms spared per step, 9 of them by 0/0: in 1000 steps 9 s for 2 s of compiling, and 1 s for 2 s.
    graphs = runtime(Savings(steady_s=0.01, eager_steady_s=0.02, outcome="faster", run_steps=1000))

    assert graphs["0/0"].pays is True
    assert graphs["0/1"].pays is False
    # 9 ms over 3 calls are 3 ms per call.
    assert graphs["0/0"].break_even_calls == 667
    assert graphs["0/1"].break_even_calls == 2000


def test_a_graph_that_is_never_called_does_not_pay():
    assert runtime()["1/0"].pays is False
    assert runtime()["1/0"].break_even_calls is None


@pytest.mark.parametrize(
    ("savings", "pays"),
    [
        (None, None),
        (Savings(steady_s=0.01, eager_steady_s=0.02, outcome="undecided"), None),
        (Savings(steady_s=0.0199, eager_steady_s=0.02, outcome="same"), False),
        (Savings(steady_s=0.03, eager_steady_s=0.02, outcome="slower"), False),
    ],
)
def test_nothing_is_said_to_pay_that_was_not_shown_to_be_faster(savings, pays):
    assert runtime(savings)["0/0"].pays is pays
    assert runtime(savings)["0/0"].break_even_calls is None


def test_unknown_compile_times_leave_it_open():
    graphs = runtime(Savings(steady_s=0.01, eager_steady_s=0.02), took=None)

    assert graphs["0/0"].pays is None


def test_after_a_reset_the_last_compilation_of_an_id_is_the_one_in_use():
    later = FIRST._replace(epoch=1)
    found = read_runtime(
        profiled({"0/0": Region([1.0])}),
        log_of(FIRST, later),
        [compilation("0/0"), compilation("r1:0/0")],
    )

    assert {graph.compile_id: graph.calls for graph in found.graphs} == {"r1:0/0": 1, "0/0": 0}


def test_backwards_outside_of_the_profile_are_joined_by_cache_key():
    found = read_runtime(
        profiled({"0/0": Region([1.0], keys=["fa"])}, backward_by_key={"fb": 0.5, "other": 9.0}),
        log_of(FIRST, keys={"fa": FIRST, "fb": FIRST}),
        [compilation("0/0")],
    )

    (graph,) = found.graphs
    assert graph.backward_s == 0.5
    assert graph.total_s == 1.5
    assert graph.cache_key == "fa"


def test_compilations_without_code_are_no_graphs():
    found = read_runtime(profiled({}), log_of(FIRST), [compilation("0/0", outcome="failed")])

    assert found.graphs == []


def test_dispatch_is_per_step_and_unknown_where_not_shown():
    found = read_runtime(profiled({}, lookup_s=1.0, wrapper_s=0.5), log_of(), [])

    assert found.dispatch_s == pytest.approx(0.15)
    assert Runtime().dispatch_s is None


def test_odd_cache_entries_are_passed_over():
    log = CompileLog(
        (
            LogEntry("fx_graph_cache_hit", {}, "not json", compile_id=FIRST),
            LogEntry("fx_graph_cache_hit", {}, '{"key": 3}', compile_id=FIRST),
            LogEntry("fx_graph_cache_hit", {}, '{"key": "f1"}'),
        )
    )

    assert graph_keys(log) == {}


def test_of_several_recordings_the_one_with_the_median_step_is_told():
    steps_s = [0.09, 0.002, 0.003]
    found = middle_recording([Profiled(5, Regions({}, {}, None, None), step_s=step_s) for step_s in steps_s])

    assert (found.step_s, found.num_recordings) == (0.003, 3)
    assert read_runtime(found, log_of(), []).num_recordings == 3


@pytest.mark.parametrize(
    ("step_s", "cycle", "recordings", "num_steps"),
    [
        (0.001, 1, 3, 10),
        (0.001, 4, 3, 12),
        (0.001, 12, 1, 36),
        (0.03, 1, 3, 6),
        (0.05, 1, 1, 10),
        (2.0, 1, 1, 5),
    ],
)
def test_short_steps_are_recorded_three_times_and_long_ones_once(step_s, cycle, recordings, num_steps):
    plan = Plan(steps=9, cycle=cycle, budget_s=1.0, progress=lambda _share, _text: None)

    assert plan.profiled_steps(step_s) == (recordings, num_steps)
