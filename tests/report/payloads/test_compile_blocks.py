"""What a page tells of breaks, recompilations and cost: what the record holds, and the sources only where it names them."""

from __future__ import annotations

from pathlib import Path

from document_fixtures import document_of

from pyrometer.advice import Advice
from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.costs.record import CacheEvent, CacheSummary, Compilation, CompileCost
from pyrometer.compiler.difference import diff_compile
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.recompiles.record import (
    ChangedInput,
    GuardSummary,
    LimitReached,
    Recompile,
    RecompileCause,
)
from pyrometer.compiler.report import CompileReport
from pyrometer.place import Place
from pyrometer.place import Place as Where
from pyrometer.report.attachments import Attachments, SourceText
from pyrometer.report.documents import CompileDocument
from pyrometer.report.payloads.compile import blocks
from pyrometer.report.payloads.compile_breaks import breaks_content
from pyrometer.report.payloads.compile_cost import compile_content, recompiled_frames
from pyrometer.report.payloads.compile_difference import MISSING, compare_graphs, difference_content
from pyrometer.report.sources import places_to_show, read_sources
from pyrometer.rules.finding import Finding


def again(number: int, *guards: str, file: str = "m.py") -> Recompile:
    causes = [
        RecompileCause(
            entry=f"0/{number - 1}", guard=guards[0], all_failing=list(guards), kind="length",
            place=Place(file=file, line=7, source="self.kept.append(x)"),
        )
    ]  # fmt: skip
    change = ChangedInput(
        source="L['x']", name="length of kept", kind="length", before=[str(number)], after=str(number + 1)
    )
    return Recompile(
        compile_id=f"0/{number}", function="torch_dynamo_resume_in_tick_at_3", file=file, line=3, causes=causes,
        changed_inputs=[change], compile_s=0.25,
    )  # fmt: skip


def report(**changes) -> CompileReport:
    values = {
        "graphs": 1, "frames": 1, "skipped_frames": 0, "breaks": [], "recompiles": [], "limit_reached": False,
        "guards": GuardSummary(), "cost": CompileCost(), "cache": CacheSummary(), "artifact_bytes": 0,
    }  # fmt: skip
    return CompileReport(**{**values, **changes})


def document(compile_report: CompileReport, **changes) -> CompileDocument:
    fields = {name: getattr(compile_report, name) for name in compile_report.__struct_fields__}
    return document_of(CompileDocument, target="m.py:work", **{**fields, **changes})


def branch(file: str = "m.py", line: int = 4, **changes) -> Break:
    rewrite = Advice(
        slug="choose",
        title="choose",
        why="both are cheap",
        replaces="if x:",
        rewrite="torch.where(x)",
        fix_class="tolerance",
    )
    values = {
        "id": "gb0170",
        "reason": "Data-dependent branching",
        "source": "if x:",
        "advice": [rewrite],
        "count": 3,
    }
    return Break(file=file, line=line, **{**values, **changes})


def test_a_break_stands_at_its_line_with_its_advice():
    source = SourceText(file="m.py", first_line=2, lines=["a", "b", "if x:", "c"])
    content = breaks_content(report(breaks=[branch()]), [], [source])
    assert content is not None
    (file,) = content.files
    assert file.is_read
    assert file.pieces[0].lines == ["a", "b", "if x:", "c"]
    (note,) = file.notes
    assert (note.line, note.kind, note.count) == (4, "break", 3)
    assert note.advice[0].caution == "results may differ by rounding"


def test_without_sources_the_lines_of_the_records_are_shown():
    content = breaks_content(report(breaks=[branch(), branch(line=9, source="")]), [], [])
    assert content is not None
    (file,) = content.files
    assert not file.is_read
    assert [(piece.first_line, piece.lines) for piece in file.pieces] == [(4, ["if x:"]), (9, [""])]


def test_recompilations_and_their_guards_stand_at_their_lines():
    content = breaks_content(
        report(recompiles=[again(1, "len(kept) == 1"), again(2, "len(kept) == 2")]), [], []
    )
    assert content is not None
    notes = {(note.line, note.kind): note for note in content.files[0].notes}
    assert notes[3, "recompile"].title == "tick was compiled again 2 times"
    assert notes[3, "recompile"].remark == "what changed: length of kept"
    assert notes[7, "guard"].count == 2


def test_what_was_given_up_and_the_limit_are_told_once():
    skip = SkippedFrame(
        compile_id="0/8", function="tick", file="m.py", line=3, reason="limit", kind="recompile_limit"
    )
    limit = LimitReached(function="tick", file="m.py", line=3, limit=8, reason="limit of 8", compile_id="0/8")
    content = breaks_content(report(skips=[skip], limits=[limit], limit_reached=True), [], [])
    assert content is not None
    assert [note.kind for note in content.files[0].notes] == ["limit"]
    assert "limit of 8" in content.files[0].notes[0].title


def test_findings_are_told_in_files_that_have_breaks():
    def finding(file: str, line: int) -> Finding:
        return Finding(
            code="PYR101", name="n", severity="info", message="slow", where=Where(file=file, line=line),
            confidence="low", advice=Advice(slug="a", title="do", fix_class="exact"),
        )  # fmt: skip

    content = breaks_content(report(breaks=[branch()]), [finding("m.py", 4), finding("other.py", 1)], [])
    assert content is not None
    assert [(note.kind, note.code) for note in content.files[0].notes] == [
        ("break", ""),
        ("finding", "PYR101"),
    ]
    assert breaks_content(report(), [finding("m.py", 4)], []) is None


def test_the_matrix_knows_one_guard_by_its_text_without_values():
    limit = LimitReached(
        function="tick",
        file="m.py",
        line=3,
        limit=8,
        reason="limit",
        compile_id="0/3",
        causes=again(3, "len(kept) == 3").causes,
    )
    compile_report = report(
        recompiles=[again(1, "len(kept) == 1", "mode == 2"), again(2, "len(kept) == 2")], limits=[limit]
    )
    (frame,) = recompiled_frames(compile_report)
    assert frame.columns == ["0/1", "0/2", "0/3"]
    assert frame.refused == 2
    assert [(row.guard, row.failed, row.also) for row in frame.guards] == [
        ("len(kept) == …", [0, 1, 2], []),
        ("mode == …", [], [0]),
    ]
    assert frame.guards[0].said == ["len(kept) == 1", "len(kept) == 2", "len(kept) == 3"]
    assert frame.seen[0].values == ["1", "2", "3"]
    assert frame.compile_s == [0.25, 0.25, None]


def test_phases_stand_in_the_order_of_compiling_and_add_up():
    row = Compilation(
        compile_id="0/0", function="f", file="m.py", line=1, outcome="compiled", total_s=3.0,
        phases_s={"guards": 1.0, "Dynamo tracing": 2.0}, cache="hit",
    )  # fmt: skip
    cost = CompileCost(compile_s=3.0, phases_s={"guards": 1.0, "Dynamo tracing": 2.0, "of my own": 0.5})
    events = [CacheEvent(compile_id="0/0", cache="fx_graph", outcome="hit", saved_s=1.5)]
    content = compile_content(
        report(compilations=[row], cost=cost, cache=CacheSummary(hits=1, state="warm", events=events))
    )
    assert content is not None
    assert content.phases == ["Dynamo tracing", "guards", "of my own"]
    assert content.totals_s == [2.0, 1.0, 0.5]
    assert content.slots == [0, 1, 2]
    assert content.compilations[0].phases_s == [2.0, 1.0, 0.0]
    assert content.compilations[0].spared_s == 1.5
    assert compile_content(report()) is None


def graph(*targets: str, kind: str = "float32") -> Graph:
    nodes = [
        GraphNode(
            name=f"n{place}", op="call", target=target, dtype=kind, shape=["2"], file="m.py", line=place
        )
        for place, target in enumerate(targets)
    ]
    return Graph(compile_id="0/0", stage="dynamo", nodes=nodes, num_ops=len(nodes))


def test_operations_are_paired_in_their_order():
    before, after = graph("mm", "relu", "add"), graph("mm", "gelu", "add", "mul")
    (pair,) = compare_graphs([before], [after])
    assert [row.sign for row in pair.rows] == ["same", "removed", "added", "same", "added"]
    assert (pair.added, pair.removed, pair.changed) == (2, 1, 0)
    (changed,) = compare_graphs([before], [graph("mm", "relu", "add", kind="bfloat16")])
    assert changed.changed == 3
    assert compare_graphs([before], [before]) == []
    assert compare_graphs([], [after])[0].added == 4


def test_what_lies_far_from_a_change_is_counted():
    names = [f"op{place}" for place in range(40)]
    (pair,) = compare_graphs([graph(*names)], [graph(*names, "last")])
    assert pair.rows[0].sign == "skipped"
    assert pair.rows[0].count == 37


def test_a_comparison_says_what_is_missing():
    old, new = report(breaks=[branch()]), report(graph_records=[graph("mm")])
    diff = diff_compile(old, new)
    content = difference_content(new, diff)
    assert content.missing == MISSING
    assert [(change.sign, change.what) for change in content.changes] == [("removed", "break")]
    assert difference_content(new, diff, [graph("relu")]).missing == ""
    names = [block.name for block in blocks(document(new, diff=diff), Attachments())]
    assert names == ["graphs", "graph/0", "graphdiff"]


def test_only_lines_around_what_the_document_names_are_read(tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text("\n".join(f"line {number}" for number in range(1, 101)), encoding="utf-8")
    secret = tmp_path / "secret.env"
    secret.write_text("TOKEN=canary\n", encoding="utf-8")
    compile_document = document(
        report(
            breaks=[
                branch(str(path), 50),
                branch(str(secret), 1),
                branch(str(tmp_path / "gone.py"), 1),
                branch("", 0),
            ]
        )
    )
    assert places_to_show(compile_document)[str(path)] == {50}
    (source,) = read_sources(compile_document, around=2)
    assert (source.file, source.first_line) == (str(path), 48)
    assert source.lines == ["line 48", "line 49", "line 50", "line 51", "line 52"]


def test_reading_ends_at_so_many_lines_and_never_fails(tmp_path: Path):
    for number in range(4):
        (tmp_path / f"m{number}.py").write_text("x\n" * 5000, encoding="utf-8")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    breaks = [
        branch(str(tmp_path / f"m{number}.py"), line) for number in range(4) for line in range(1, 5000, 10)
    ]
    compile_document = document(
        report(breaks=[*breaks, branch(str(tmp_path / "binary.py"), 1), branch(str(tmp_path), 1)])
    )
    assert sum(len(source.lines) for source in read_sources(compile_document)) == 2000
