"""Limits: a sentence for each that is broken, with the lines that broke it."""

from __future__ import annotations

import pytest
import torch

from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.budget import CompileBudget, assert_compile_budget, check_budget
from pyrometer.compiler.build import build_report
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.costs.record import CacheSummary, Compilation, CompileCost
from pyrometer.compiler.inspection.record import Runtime, SilentEager
from pyrometer.compiler.recompiles.record import ChangedInput, GuardSummary, Recompile, RecompileCause
from pyrometer.compiler.report import CompileReport
from pyrometer.errors import BudgetExceededError, ExitCode, InputError
from pyrometer.record import from_json, to_json


def report(**parts):
    given = {
        "graphs": 1,
        "frames": 1,
        "skipped_frames": 0,
        "breaks": [],
        "recompiles": [],
        "limit_reached": False,
        "guards": GuardSummary(),
        "cost": CompileCost(),
        "cache": CacheSummary(),
        "artifact_bytes": 0,
    }
    return CompileReport(**(given | parts))


def broken(line=41, **more):
    given = {"id": "gb0170", "reason": "Data-dependent branching", "file": "/home/me/model.py", "line": line}
    return Break(**(given | more))


RECOMPILE = Recompile(
    compile_id="0/1",
    function="forward",
    file="/home/me/model.py",
    line=12,
    causes=[RecompileCause(entry="0/0", guard="size mismatch", all_failing=[])],
    changed_inputs=[
        ChangedInput(source="L['x'].size()[0]", name="x, dimension 0", kind="size", before=["4"], after="6")
    ],
)


def only(**limits):
    return CompileBudget(**limits)


def test_what_is_within_its_limits_says_nothing():
    kept = report(
        breaks=[broken()], recompiles=[RECOMPILE], graphs=3, skipped_frames=1, cost=CompileCost(compile_s=2.0)
    )
    limits = only(max_graph_breaks=1, max_recompiles=1, max_graphs=3, max_skipped_frames=1, max_compile_s=2.0)
    assert check_budget(kept, limits) == []
    assert_compile_budget(kept, max_graph_breaks=1)


def test_breaks_name_their_lines_and_those_that_only_follow_do_not_count():
    follower = broken(
        44, chained=True, chained_to="/home/me/model.py:41", id=None, reason="graph break in loop\nmore"
    )
    (sentence,) = check_budget(report(breaks=[broken(), follower]), only(max_graph_breaks=0))
    assert sentence == ("1 graph break, 0 allowed: model.py:41 (gb0170 Data-dependent branching)")


def test_of_many_the_first_are_named():
    (sentence,) = check_budget(report(breaks=[broken(line) for line in range(9)]), only(max_graph_breaks=2))
    assert sentence.startswith("9 graph breaks, 2 allowed: model.py:0 (")
    assert sentence.endswith("model.py:4 (gb0170 Data-dependent branching) and 4 more")


def test_recompiles_name_what_changed():
    unknown = Recompile(compile_id="0/2", function="step", file="", line=0, causes=[], changed_inputs=[])
    assert check_budget(report(recompiles=[RECOMPILE, unknown]), only(max_recompiles=1)) == [
        "2 recompiles, 1 allowed: model.py:12 forward (x, dimension 0: 4 → 6), unknown file:0 step (no reason told)"
    ]


def test_graphs_skipped_frames_and_time_name_functions():
    compilations = [
        Compilation(
            compile_id=f"0/{number}",
            function="forward",
            file="m.py",
            line=3,
            outcome="compiled",
            total_s=seconds,
        )
        for number, seconds in enumerate((1.0, 4.5))
    ]
    skip = SkippedFrame(
        compile_id="1/0", function="loop", file="C:\\work\\m.py", line=9, reason="break in loop", kind="break"
    )
    over = report(
        graphs=2, skipped_frames=1, skips=[skip], compilations=compilations, cost=CompileCost(compile_s=5.5)
    )
    assert check_budget(over, only(max_graphs=1, max_skipped_frames=0, max_compile_s=5)) == [
        "2 graphs, 1 allowed: m.py:3 forward has 2",
        "1 skipped frame, 0 allowed: m.py:9 loop (break in loop)",
        "5.50 s of compiling, 5.00 s allowed: m.py:3 forward 4.50 s, m.py:3 forward 1.00 s",
    ]


SILENT = SilentEager(function="forward", file="/home/me/model.py", line=12, calls=9, failing=[])


def test_functions_that_run_eagerly_in_silence_count_as_skipped_under_any_limit():
    silent = report(graphs=0, runtime=Runtime(silent_eager=[SILENT]))
    text = "model.py:12 forward (9 calls ran eagerly in silence)"
    assert check_budget(silent, only(max_skipped_frames=0)) == [f"1 skipped frame, 0 allowed: {text}"]
    assert check_budget(silent, only(max_graph_breaks=0, max_graphs=0)) == [
        f"1 function that ran eagerly in silence, 0 allowed: {text}"
    ]
    assert check_budget(silent, only(max_skipped_frames=1)) == []


def test_a_limit_is_not_kept_that_cannot_be_told():
    with pytest.raises(BudgetExceededError) as caught:
        assert_compile_budget(report(graphs=0, incomplete=["model.py:12 forward"]), max_graphs=0)
    assert str(caught.value).startswith(
        "cannot be told: model.py:12 forward was compiled before the recording; inspect it in a fresh process"
    )


def test_the_error_fails_a_test_and_has_the_exit_code_of_a_finding():
    with pytest.raises(AssertionError, match="graph break, 0 allowed") as caught:
        assert_compile_budget(
            report(breaks=[broken()], recompiles=[RECOMPILE]), max_graph_breaks=0, max_recompiles=0
        )
    assert isinstance(caught.value, BudgetExceededError)
    assert caught.value.exit_code == ExitCode.FOUND
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    "limits", [{}, {"max_graphs": -1}, {"max_compile_s": float("nan")}, {"max_compile_s": float("inf")}]
)
def test_limits_that_mean_nothing_are_refused(limits):
    with pytest.raises(InputError, match="limit"):
        CompileBudget(**limits)


def test_a_budget_survives_a_file():
    budget = only(max_graph_breaks=0, max_compile_s=1.5)
    assert from_json(CompileBudget, to_json(budget)) == budget


def test_a_real_program_is_held_to_its_budget():
    def branching(x):
        y = x + 1
        if y.sum() > 0:
            return y * 2
        return y * 3

    with collect() as collector:
        function = torch.compile(branching, backend="eager")
        function(torch.ones(4))
        function(torch.ones(5))
    compile_report = build_report(collector.log())
    with pytest.raises(BudgetExceededError) as caught:
        assert_compile_budget(compile_report, max_graph_breaks=0, max_recompiles=0, max_skipped_frames=0)
    breaks, recompiles = str(caught.value).splitlines()
    line = branching.__code__.co_firstlineno + 2
    assert breaks.startswith(f"1 graph break, 0 allowed: test_budget.py:{line} (gb")
    assert recompiles.startswith("2 recompiles, 0 allowed: test_budget.py:")
    assert_compile_budget(compile_report, max_graph_breaks=1, max_recompiles=2, max_skipped_frames=0)
