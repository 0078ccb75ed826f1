"""Two reports: what one change to a program added and removed, and nothing that only moved."""

from __future__ import annotations

import importlib.util
import textwrap

import pytest
import torch
from msgspec.structs import replace

from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.build import build_report
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.costs.record import CacheSummary, CompileCost
from pyrometer.compiler.difference import diff_compile
from pyrometer.compiler.fusion.record import FusedGroup
from pyrometer.compiler.recompiles.record import ChangedInput, GuardSummary, LimitReached, Recompile
from pyrometer.compiler.report import CompileDiff, CompileReport
from pyrometer.record import from_json, to_json

EMPTY = CompileReport(
    graphs=1,
    frames=1,
    skipped_frames=0,
    breaks=[],
    recompiles=[],
    limit_reached=False,
    guards=GuardSummary(),
    cost=CompileCost(),
    cache=CacheSummary(),
    artifact_bytes=0,
)


def with_breaks(*breaks, **more):
    return replace(EMPTY, breaks=list(breaks), **more)


def broken(line=41, **more):
    given = {"id": "gb0170", "reason": "Data-dependent branching", "file": "/tmp/a1/model.py", "line": line}
    return Break(**(given | {"function": "forward", "source": "if x.sum() > 0:"} | more))


def recompiled(name="x, dimension 0", function="forward", after="6"):
    change = ChangedInput(source=name, name=name, kind="size", before=["4"], after=after)
    return Recompile(
        compile_id="0/1",
        function=function,
        file="/tmp/a1/model.py",
        line=12,
        causes=[],
        changed_inputs=[change],
    )


def test_a_report_against_itself_changes_nothing():
    report = with_breaks(broken(), recompiles=[recompiled()])
    diff = diff_compile(report, report)
    assert not diff.changed
    assert diff.sentence == "nothing changed: 1 break, 1 recompile, 1 graph"
    assert [(kept.before.line, kept.after.line) for kept in diff.breaks_kept] == [(41, 41)]


def test_moved_lines_and_other_directories_are_no_change():
    moved = broken(
        57,
        file="/tmp/b2/model.py",
        function="torch_dynamo_resume_in_forward_at_50",
        source="  if x.sum() > 0:  ",
    )
    diff = diff_compile(with_breaks(broken()), with_breaks(moved))
    assert not diff.changed
    assert diff.breaks_kept[0].after.line == 57


def test_one_more_break_of_the_same_text_is_one_added():
    diff = diff_compile(with_breaks(broken(41)), with_breaks(broken(41), broken(60)))
    assert [graph_break.line for graph_break in diff.breaks_added] == [60]
    assert (
        diff.sentence
        == "this change added a break at model.py:60 (gb0170 Data-dependent branching) and removed none"
    )


@pytest.mark.parametrize(
    "other", [{"id": "gb0124"}, {"file": "/tmp/a1/other.py"}, {"function": "step"}, {"source": "if y.any():"}]
)
def test_another_kind_file_function_or_text_is_another_break(other):
    diff = diff_compile(with_breaks(broken()), with_breaks(broken(**other)))
    assert (len(diff.breaks_added), len(diff.breaks_removed), len(diff.breaks_kept)) == (1, 1, 0)
    assert " and removed a break at model.py:41 (" in diff.sentence


def test_where_the_text_is_withheld_order_within_the_function_decides():
    diff = diff_compile(
        with_breaks(broken(41), broken(50)), with_breaks(broken(45, source=""), broken(52, source=""))
    )
    assert [(kept.before.line, kept.after.line) for kept in diff.breaks_kept] == [(41, 45), (50, 52)]


def test_removed_breaks_are_told():
    diff = diff_compile(
        with_breaks(broken(), broken(50, source="print(x)", id="gb0059", reason="print")), EMPTY
    )
    assert diff.sentence == (
        "this change removed 2 breaks at model.py:41 (gb0170 Data-dependent branching), model.py:50 (gb0059 print) "
        "and added none"
    )


def test_recompiles_are_matched_by_what_changed_not_by_its_values():
    before = with_breaks(recompiles=[recompiled(after="6"), recompiled(after="7")])
    after = with_breaks(recompiles=[recompiled(after="100"), recompiled("y, dimension 1")])
    diff = diff_compile(before, after)
    assert [recompile.changed_inputs[0].name for recompile in diff.recompiles_added] == ["y, dimension 1"]
    assert len(diff.recompiles_removed) == 1
    assert diff.sentence.startswith(
        "this change added 1 recompile: model.py:12 forward (y, dimension 1: 4 → 6) and removed 1"
    )


def test_skips_limits_and_graphs_are_told():
    skip = SkippedFrame(compile_id="0/0", function="loop", file="m.py", line=3, reason="", kind="break")
    limit = LimitReached(function="step", file="m.py", line=9, limit=8, reason="")
    after = replace(EMPTY, skips=[skip], skipped_frames=1, limits=[limit], limit_reached=True, graphs=4)
    diff = diff_compile(EMPTY, after)
    assert diff.sentence == (
        "this change added 1 skipped frame: m.py:3 loop; added 1 function at the recompile limit: m.py:9 step; "
        "graphs went from 1 to 4"
    )
    assert {(change.name, change.before, change.after) for change in diff.counts} == {
        ("graphs", 1, 4),
        ("skipped_frames", 0, 1),
    }


def test_guards_by_type_costs_and_caches_are_no_change_of_the_program():
    before = replace(
        EMPTY, guards=GuardSummary(by_type={"TYPE_MATCH": 2, "ID_MATCH": 1}), cost=CompileCost(compile_s=1.0)
    )
    after = replace(
        EMPTY,
        guards=GuardSummary(by_type={"TYPE_MATCH": 3, "ID_MATCH": 1}),
        cost=CompileCost(compile_s=2.0, phases_s={"dynamo": 2.0}),
        cache=CacheSummary(hits=2, state="warm"),
    )
    diff = diff_compile(before, after)
    assert not diff.changed
    assert [(guard.name, guard.before, guard.after) for guard in diff.guards] == [("TYPE_MATCH", 2, 3)]
    assert {(cost.name, cost.before, cost.after) for cost in diff.costs} == {
        ("compile_s", 1.0, 2.0),
        ("phase.dynamo_s", None, 2.0),
    }
    assert [(change.name, change.before, change.after) for change in diff.cache] == [("hits", 0, 2)]
    assert "compile times and kernels do not compare" in diff.notes[0]


def test_fusions_are_compared_where_both_sides_know_them():
    def group(*ops):
        return FusedGroup(compile_id="0/0", name="op0", kind="fused", ops=list(ops), num_nodes=len(ops))

    split = replace(EMPTY, fusions=[group("add"), group("mul")])
    fused = replace(EMPTY, fusions=[group("mul", "add")])
    diff = diff_compile(split, fused)
    assert [fused_group.ops for fused_group in diff.fusions_added] == [["mul", "add"]]
    assert len(diff.fusions_removed) == 2
    assert diff.sentence.endswith("other counts differ: fused_groups")
    unknown = diff_compile(split, EMPTY)
    assert not unknown.changed
    assert unknown.notes == ["fusions are known on one side only, and are not compared"]


BEFORE = """
    def forward(x):
        y = x.sin()
        print("step")
        return y.cos()
"""
AFTER = """
    import math

    def forward(x):
        # moved by a comment
        y = x.sin()
        print("step")
        z = y.cos()
        return z * z.sum().item()
"""


def compiled(folder, source):
    folder.mkdir()
    path = folder / "model.py"
    path.write_text(textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location("model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch._dynamo.reset()
    with collect() as collector:
        torch.compile(module.forward, backend="eager")(torch.ones(4))
    return build_report(collector.log())


def test_an_edited_program(tmp_path):
    before, after = compiled(tmp_path / "one", BEFORE), compiled(tmp_path / "two", AFTER)
    diff = diff_compile(before, after)
    assert [graph_break.source.strip() for graph_break in diff.breaks_added] == ["return z * z.sum().item()"]
    assert not diff.breaks_removed
    assert [(kept.before.line, kept.after.line) for kept in diff.breaks_kept] == [(4, 7)]
    assert diff.sentence.startswith("this change added a break at model.py:9 (gb")
    assert " and removed none" in diff.sentence
    back = diff_compile(after, before)
    assert [graph_break.line for graph_break in back.breaks_removed] == [9]
    assert from_json(CompileDiff, to_json(diff)) == diff


def test_the_same_program_in_another_place_is_the_same(tmp_path):
    moved = "\n\n\n" + textwrap.dedent(BEFORE)
    diff = diff_compile(compiled(tmp_path / "one", BEFORE), compiled(tmp_path / "two", moved))
    assert not diff.changed
    assert diff.sentence == "nothing changed: 1 break, 0 recompiles, 2 graphs"
