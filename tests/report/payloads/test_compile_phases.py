"""The drawing of compile time nested: rows, names and colours are those of the record."""

from __future__ import annotations

from document_fixtures import changed, document_of

from pyrometer.compiler.costs.record import CacheSummary, Compilation, CompileCost, PhaseTree
from pyrometer.compiler.recompiles.record import GuardSummary
from pyrometer.compiler.report import CompileReport
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import CompileDocument
from pyrometer.report.payloads.compile import blocks
from pyrometer.report.payloads.compile_phases import phases_content

TREE = PhaseTree(
    names=["0/0", "entire_frame_compile", "build_guards"],
    phases=["Dynamo tracing", "guards"],
    parent=[-1, 0, 1],
    name=[0, 1, 2],
    phase=[-1, 0, 1],
    calls=[1, 1, 3],
    own_s=[0.0, 1.0, 2.5],
    left_out=4,
)


def report(tree: PhaseTree | None) -> CompileReport:
    compiled = Compilation(
        compile_id="0/0",
        function="torch_dynamo_resume_in_forward_at_7",
        file="project/net.py",
        line=7,
        outcome="compiled",
    )
    cost = CompileCost(compile_s=3.5, phases_s={"Dynamo tracing": 1.0, "guards": 2.5}, tree=tree)
    return CompileReport(
        graphs=1, frames=1, skipped_frames=0, breaks=[], recompiles=[], limit_reached=False, guards=GuardSummary(),
        cost=cost, cache=CacheSummary(), artifact_bytes=0, compilations=[compiled],
    )  # fmt: skip


def test_rows_follow_the_whole_and_keep_their_own_times():
    content = phases_content(report(TREE))
    assert content.calls.parent == [-1, 0, 1, 2]
    assert content.calls.self_ns == [0, 0, 1_000_000_000, 2_500_000_000]
    assert [content.names[name] for name in content.calls.name][2:] == [
        "entire_frame_compile",
        "build_guards",
    ]
    assert [content.kinds[kind] for kind in content.calls.kind] == [
        "trace",
        "compilation",
        "Dynamo tracing",
        "guards",
    ]
    assert "4 short steps" in content.notice


def test_a_compilation_is_named_with_the_users_function():
    content = phases_content(report(TREE))
    assert content.names[content.calls.name[1]] == "0/0 forward project/net.py:7"


def test_colours_are_those_of_the_longest_phases():
    content = phases_content(report(TREE))
    slots = dict(zip(content.kinds, content.slots, strict=True))
    assert (slots["guards"], slots["Dynamo tracing"]) == (0, 1)


def test_without_nesting_there_is_no_block():
    assert phases_content(report(None)) is None
    compile_report = report(None)
    document = document_of(
        CompileDocument,
        target="x",
        **{name: getattr(compile_report, name) for name in compile_report.__struct_fields__},
    )
    assert "phases" not in [block.name for block in blocks(document, Attachments())]
    nested = changed(document, cost=report(TREE).cost)
    assert "phases" in [block.name for block in blocks(nested, Attachments())]
