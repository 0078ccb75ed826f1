"""Blocks of graphs: every operation is in one box of every level, levels stay small, and what is marked stands at its line."""

from __future__ import annotations

import json

import pytest
from document_fixtures import document_of

from pyrometer.advice import Advice
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.costs.record import CacheSummary, CompileCost
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.recompiles.record import GuardSummary
from pyrometer.compiler.report import CompileReport
from pyrometer.place import Place
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import CompileDocument
from pyrometer.report.payloads.compile import blocks
from pyrometer.report.payloads.compile_graph import GraphContent, Level
from pyrometer.report.payloads.compile_graphs import distinct, graph_blocks, graph_content
from pyrometer.report.payloads.compile_levels import MOST_ARRANGED, MOST_BOXES, PORTS
from pyrometer.report.payloads.compile_marks import LineMark, line_marks
from pyrometer.rules.finding import Finding

CANARY = "</script><img src=x onerror=alert(1)>"


def chain(num_ops: int, module=lambda place: f"layers.{place // 20}", *, line: int | None = None) -> Graph:
    """A chain with a parameter at every fifth operation and a residual line over each layer."""
    nodes = [GraphNode(name="x", op="input", role="input", dtype="float32", shape=["8"], num_bytes=32)]
    before = residual = "x"
    for place in range(num_ops):
        inputs = [before, *([residual] if place % 20 == 19 else [])]
        if place % 5 == 0:
            nodes.append(
                GraphNode(name=f"w{place}", op="input", role="parameter", module=module(place), num_bytes=64)
            )
            inputs.append(f"w{place}")
        nodes.append(
            GraphNode(
                name=f"n{place}",
                op="call",
                target=("aten.mm.default", "aten.relu.default")[place % 2],
                inputs=inputs,
                dtype="float32",
                shape=["8"],
                num_bytes=32,
                module=module(place),
                file="project/model.py",
                line=10 + place % 20 if line is None else line,
                source="x = f(x)",
            )
        )
        before = f"n{place}"
        residual = before if place % 20 == 19 else residual
    nodes.append(GraphNode(name="output", op="output", inputs=[before]))
    return Graph(compile_id="0/0", stage="dynamo", nodes=nodes, num_ops=num_ops)


def report(*graphs: Graph, **changes) -> CompileReport:
    values = {
        "graphs": 1, "frames": 1, "skipped_frames": 0, "breaks": [], "recompiles": [], "limit_reached": False,
        "guards": GuardSummary(), "cost": CompileCost(), "cache": CacheSummary(), "artifact_bytes": 0,
        "graph_records": list(graphs),
    }  # fmt: skip
    return CompileReport(**{**values, **changes})


def document(compile_report: CompileReport, **changes) -> CompileDocument:
    fields = {name: getattr(compile_report, name) for name in compile_report.__struct_fields__}
    return document_of(CompileDocument, target="model.py:work", **{**fields, **changes})


def label(content: GraphContent, level: Level, box: int) -> str:
    return content.texts[level.boxes.label[box]]


def test_a_small_graph_is_shown_operation_by_operation():
    content = graph_content(chain(10))
    level = content.levels[0]
    assert level.collapsed_by == "none"
    assert content.flat == 0
    assert [units for units in level.units if len(units) != 1] == []
    # Ten operations, each with its own parameter, the input and the output.
    assert len(content.units.nodes) == 12
    assert content.nodes.name[content.units.nodes[1][0]] == "w0"


def test_every_unit_stands_in_exactly_one_box_of_the_first_level():
    for graph in (chain(400), chain(400, lambda _: ""), chain(400, lambda _: "body", line=3)):
        content = graph_content(graph)
        held = sorted(unit for units in content.levels[0].units for unit in units)
        assert held == list(range(len(content.units.nodes)))


def test_boxes_are_modules_where_there_are_modules():
    content = graph_content(chain(400))
    level = content.levels[0]
    assert level.collapsed_by == "module"
    labels = [label(content, level, box) for box in range(len(level.x)) if len(level.units[box]) > 1]
    assert labels == [f"layers.{place}" for place in range(20)]


def test_modules_of_a_level_are_of_one_depth_the_deepest_that_fits():
    content = graph_content(chain(600, lambda place: f"layers.{place // 100}.{place // 25}.{place // 4}"))
    level = content.levels[0]
    depths = {
        label(content, level, box).count(".") for box in range(len(level.x)) if len(level.units[box]) > 1
    }
    assert depths == {2}


def test_no_level_but_that_of_all_operations_is_large():
    content = graph_content(chain(1000, lambda place: f"a.{place // 500}.{place // 25}.{place // 5}"))
    assert len(content.levels) >= 2
    for number, level in enumerate(content.levels):
        if number != content.flat:
            assert len(level.x) <= MOST_BOXES


def test_what_the_browser_would_have_to_arrange_is_small_even_without_modules_or_lines():
    content = graph_content(chain(1000, lambda _: "one.module", line=3), flat=False)
    assert content.flat == -2
    for level in content.levels:
        for units, opens in zip(level.units, level.opens, strict=True):
            assert len(units) <= MOST_ARRANGED or opens > 0


def test_a_box_that_is_too_large_opens_a_level_that_shows_it_alone():
    content = graph_content(chain(1200, lambda place: f"half.{place // 600}.part.{place // 3}"), flat=False)
    opened = [
        (level.units[box], content.levels[opens])
        for level in content.levels
        for box, opens in enumerate(level.opens)
        if opens >= 0
    ]
    for units, inside in opened:
        assert sorted(unit for held in inside.units for unit in held) == sorted(units)
        assert inside.title


def test_a_graph_of_2000_nodes_has_a_level_of_all_operations_unless_there_is_no_room():
    graph = chain(400)
    content = graph_content(graph)
    assert content.levels[content.flat].collapsed_by == "none"
    assert len(content.levels[content.flat].x) == len(content.units.nodes)
    assert graph_content(graph, flat=False).flat == -2
    assert graph_content(chain(200)).flat == -1


def test_bytes_are_those_that_leave_a_box():
    content = graph_content(chain(10))
    number = content.nodes.name.index("n3")
    unit = next(place for place, nodes in enumerate(content.units.nodes) if number in nodes)
    assert content.units.boxes.num_bytes[unit] == 32
    assert content.units.boxes.num_bytes[-1] == -1


def test_marks_stand_at_the_operations_of_their_line():
    graph = chain(40)
    lines = [
        LineMark("break", "project/model.py", 12, "a branch"),
        LineMark("finding", "other.py", 12, "no", "PYR1"),
    ]
    content = graph_content(graph, lines)
    (mark,) = content.marks
    names = {content.nodes.name[content.units.nodes[unit][0]] for unit in mark.units}
    assert names == {"n2", "n22"}


def test_breaks_that_follow_from_another_one_are_not_marked_and_findings_bear_their_code():
    breaks = [
        Break(id=None, reason="a branch", file="m.py", line=3),
        Break(id=None, reason="in its wake", file="m.py", line=4, chained=True),
    ]
    finding = Finding(
        code="PYR101", name="n", severity="info", message="slow", where=Place(file="m.py", line=3),
        confidence="low", advice=Advice(slug="a", title="do", fix_class="exact"),
    )  # fmt: skip
    marks = line_marks(report(breaks=breaks), [finding])
    assert [(mark.kind, mark.line, mark.code) for mark in marks] == [
        ("break", 3, ""),
        ("finding", 3, "PYR101"),
    ]


def test_stages_that_change_nothing_are_left_out_and_said():
    dynamo = chain(5)
    same = Graph(compile_id="0/0", stage="before_pre_grad", nodes=dynamo.nodes, num_ops=5)
    other = Graph(compile_id="0/0", stage="pre_grad", nodes=chain(4).nodes, num_ops=4)
    empty = Graph(compile_id="1/0", stage="dynamo", nodes=[], num_ops=0)
    kept, left = distinct([dynamo, same, other, empty])
    assert [graph.stage for graph in kept] == ["dynamo", "pre_grad"]
    assert left == ["0/0 before pre grad"]


def test_the_index_names_a_block_for_every_graph_and_opens_the_largest_of_dynamo():
    graphs = [chain(3), Graph(compile_id="1/0", stage="dynamo", nodes=chain(9).nodes, num_ops=9)]
    made = {block.name: json.loads(block.content) for block in graph_blocks(report(*graphs), [])}
    assert list(made) == ["graphs", "graph/0", "graph/1"]
    assert made["graphs"]["first"] == 1
    assert [entry["block"] for entry in made["graphs"]["graphs"]] == ["graph/0", "graph/1"]


def test_the_page_has_room_for_so_many_nodes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pyrometer.report.payloads.compile_graphs.MOST_NODES", 20)
    made = list(graph_blocks(report(chain(5), chain(30), chain(6)), []))
    assert [block.name for block in made] == ["graphs", "graph/0", "graph/1"]
    assert json.loads(made[0].content)["left_out"] == 1


def test_a_document_without_graphs_gives_no_block_and_the_same_one_gives_the_same_bytes():
    assert list(blocks(document(report()), Attachments())) == []
    compile_document = document(report(chain(30)))
    assert list(blocks(compile_document, Attachments())) == list(blocks(compile_document, Attachments()))


def test_odd_graphs_do_no_harm():
    nodes = [
        GraphNode(
            name=CANARY, op="call", target=CANARY, inputs=["nowhere"], source=CANARY, file=CANARY, line=1
        ),
        GraphNode(name="output", op="output", inputs=[CANARY]),
    ]
    content = graph_content(Graph(compile_id="0/0", stage="post_grad", nodes=nodes, num_ops=1))
    assert content.nodes.inputs == [[], [0]]
    only_inputs = Graph(compile_id="", stage="dynamo", nodes=[GraphNode(name="x", op="input")], num_ops=0)
    assert len(graph_content(only_inputs).levels[0].x) == 1


def test_an_opened_level_shows_what_it_reads_from_outside_and_who_reads_it_there():
    content = graph_content(chain(4000, lambda place: f"part.{place // 400}"), flat=False)
    names = content.nodes.name
    first, *opened = content.levels
    assert len(opened) == 10
    assert all(outside == [] for outside in first.outside)
    for level in opened:
        held = {unit for units in level.units for unit in units}
        stubs = {box: units for box, units in enumerate(level.outside) if units}
        assert all(not level.units[box] and held.isdisjoint(units) for box, units in stubs.items())
        assert set(stubs) <= {*level.source, *level.target}
        for box, units in stubs.items():
            there = {names[node] for unit in units for node in content.units.nodes[unit]}
            assert label(content, level, box) in there
    # The second part goes on from the first, and is read by the next operation and by the residual line.
    assert sorted(label(content, opened[1], box) for box, units in enumerate(opened[1].outside) if units) == [
        "n399",
        "n800",
        "n819",
    ]


def test_many_readers_outside_share_the_last_box():
    nodes = [GraphNode(name="x", op="input", role="input", dtype="float32", shape=["8"])]
    nodes += [call(f"in{place}", [f"in{place - 1}" if place else "x"], "inside") for place in range(400)]
    nodes += [call(f"out{place}", ["in399"], f"head.{place % 30}") for place in range(200)]
    nodes.append(GraphNode(name="output", op="output", inputs=[f"out{place}" for place in range(200)]))
    content = graph_content(Graph(compile_id="0/0", stage="dynamo", nodes=nodes, num_ops=600), flat=False)
    inside = next(level for level in content.levels if level.title == "inside")
    readers = [units for units in inside.outside if units and units != [0]]
    assert len(readers) == PORTS.most
    assert sum(map(len, readers)) == 200


def call(name: str, inputs: list[str], module: str) -> GraphNode:
    return GraphNode(
        name=name,
        op="call",
        target="aten.relu.default",
        inputs=inputs,
        dtype="float32",
        shape=["8"],
        module=module,
    )
