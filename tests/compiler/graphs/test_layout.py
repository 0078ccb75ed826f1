"""Drawings: nothing overlaps, everything is there, lines lead down, whatever the graph."""

from __future__ import annotations

import time
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.compiler.graphs.collapse import collapse_graph
from pyrometer.compiler.graphs.layout import lay_out
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.errors import InputError

MODES = ("auto", "none", "module", "line")


def check(layout, graph):
    shown = [name for box in layout.boxes for name in box.nodes]
    assert sorted(shown) == sorted(node.name for node in graph.nodes), "every node is in exactly one box"
    boxes = {box.name: box for box in layout.boxes}
    rows = {}
    for box in layout.boxes:
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= layout.width
        assert box.y + box.height <= layout.height
        rows.setdefault(box.layer, []).append(box)
    for row in rows.values():
        for left, right in pairwise(sorted(row, key=lambda box: box.x)):
            assert left.x + left.width < right.x
    bottoms = {layer: max(box.y + box.height for box in row) for layer, row in rows.items()}
    for layer, row in rows.items():
        assert all(box.y > bottom for box in row for above, bottom in bottoms.items() if above < layer)
    for edge in layout.edges:
        source, target = boxes[edge.source], boxes[edge.target]
        assert source.layer < target.layer
        assert all(upper[1] < lower[1] for upper, lower in pairwise(edge.points))
        assert edge.points[0][1] == pytest.approx(source.y + source.height, abs=0.11)
        assert edge.points[-1][1] == pytest.approx(target.y, abs=0.11)
        assert target.x <= edge.points[-1][0] <= target.x + target.width


@given(data=st.data(), mode=st.sampled_from(MODES), max_boxes=st.integers(1, 12))
def test_any_graph_is_drawn_without_overlap_and_downwards(data, any_graph, mode, max_boxes):
    graph = data.draw(any_graph)
    layout = lay_out(graph, collapse=mode, max_boxes=max_boxes)
    check(layout, graph)
    assert lay_out(graph, collapse=mode, max_boxes=max_boxes) == layout, "the same graph, the same drawing"


@given(data=st.data(), mode=st.sampled_from(MODES))
def test_whatever_is_put_together_stays_without_cycles_and_keeps_every_line(data, any_graph, mode):
    graph = data.draw(any_graph)
    shown = collapse_graph(graph, mode, 10)
    box_of = {node.name: number for number, box in enumerate(shown.boxes) for node in box}
    assert all(source < target for source, target in shown.edges)
    nodes = {node.name: node for node in graph.nodes}
    for node in graph.nodes:
        for name in node.inputs:
            pair = (box_of[name], box_of[node.name])
            hidden = (nodes[name].op == "input" and nodes[name].symbol) or (
                node.op == "output" and nodes[name].saved
            )
            if pair[0] != pair[1] and not hidden:
                assert nodes[name] in shown.edges[pair]


@pytest.mark.parametrize("mode", MODES)
def test_every_stage_of_real_models_is_drawn(transformer, convolutions, mode):
    for graph in (*transformer.values(), *convolutions.values()):
        check(lay_out(graph, collapse=mode), graph)


def test_a_large_graph_opens_as_many_modules_as_are_legible(transformer):
    graph = transformer["joint"]
    layout = lay_out(graph, max_boxes=40)
    assert layout.collapsed_by == "module"
    assert 8 <= len(layout.boxes) <= 40
    assert "blocks.0.qkv" in {box.module for box in layout.boxes} or "blocks.0" in {
        box.module for box in layout.boxes
    }


def test_a_small_graph_is_drawn_operation_by_operation(convolutions):
    layout = lay_out(convolutions["dynamo"])
    labels = {box.label: box for box in layout.boxes}
    assert layout.collapsed_by == "none"
    assert {"conv2d", "batch_norm", "relu", "mean", "linear", "output"} <= set(labels)
    assert labels["conv2d"].owner == "first"
    assert len(labels["conv2d"].nodes) == 3, "weight and bias stand in the box of their convolution"
    assert labels["linear"].detail == "f32[2, 5]"
    assert labels["batch_norm"].kind == "normalization"


def test_results_that_are_only_saved_draw_no_line_to_the_output(convolutions):
    layout = lay_out(convolutions["forward"])
    output = next(box for box in layout.boxes if box.kind == "output")
    assert output.detail.startswith("1 result, ")
    assert sum(edge.target == output.name for edge in layout.edges) == 1


def test_gradients_from_all_over_the_graph_become_numbers_in_their_boxes(transformer):
    layout = lay_out(transformer["backward"])
    output = next(box for box in layout.boxes if box.kind == "output")
    drawn = sum(len(edge.nodes) for edge in layout.edges if edge.target == output.name)
    hidden = sum(box.num_results for box in layout.boxes)
    returned = next(node for node in transformer["backward"].nodes if node.op == "output").inputs
    assert hidden > drawn
    assert hidden + drawn == len(returned)


def chain(num_nodes, *, modules=False, reach=12):
    random = Random(0)
    nodes = []
    for number in range(num_nodes):
        sources = (
            {random.randrange(max(0, number - reach), number) for _ in range(random.choice((1, 1, 2, 3)))}
            if number
            else ()
        )
        nodes.append(
            GraphNode(
                name=f"n{number}",
                op="call",
                target="aten.add.Tensor",
                inputs=[f"n{source}" for source in sorted(sources)],
                dtype="float32",
                module=f"layers.{number // 50}.{number % 5}" if modules else "",
                file="model.py",
                line=number,
            )
        )
    return Graph(compile_id="0/0", stage="dynamo", nodes=nodes, num_ops=num_nodes)


@pytest.mark.parametrize("modules", [True, False])
def test_a_graph_of_thousands_of_operations_stays_legible(modules):
    graph = chain(1500, modules=modules)
    layout = lay_out(graph)
    assert 20 <= len(layout.boxes) <= 60
    check(layout, graph)


@pytest.mark.exhaustive
def test_the_time_grows_about_with_the_size():
    def seconds(num_nodes):
        graph = chain(num_nodes)
        start = time.process_time()
        lay_out(graph, collapse="none")
        return time.process_time() - start

    seconds(100)
    small, large = min(seconds(250) for _ in range(3)), seconds(2000)
    assert large < 40 * small, "8 times the nodes; a quadratic method would take 64 times as long"


def test_a_graph_that_is_one_long_fan_is_drawn():
    reads = [[], *(["n0", f"n{number - 1}"] for number in range(1, 300))]
    nodes = [
        GraphNode(name=f"n{number}", op="call", target="aten.add.Tensor", inputs=inputs, dtype="float32")
        for number, inputs in enumerate(reads)
    ]
    graph = Graph(compile_id="", stage="dynamo", nodes=nodes, num_ops=300)
    check(lay_out(graph, collapse="none"), graph)


def test_long_lines_run_straight():
    names = [f"n{number}" for number in range(9)]
    nodes = [
        GraphNode(
            name=name,
            op="call",
            target="aten.add.Tensor",
            inputs=names[max(0, place - 1) : place],
            dtype="float32",
        )
        for place, name in enumerate(names)
    ]
    nodes.append(
        GraphNode(name="last", op="call", target="aten.add.Tensor", inputs=["n0", "n8"], dtype="float32")
    )
    layout = lay_out(Graph(compile_id="", stage="dynamo", nodes=nodes, num_ops=10), collapse="none")
    long = max(layout.edges, key=lambda edge: len(edge.points))
    assert len({x for x, _ in long.points[1:-1]}) == 1


@pytest.mark.parametrize(("option", "value"), [("collapse", "modul"), ("max_boxes", 0)])
def test_options_that_do_not_exist_are_refused(option, value):
    graph = Graph(compile_id="", stage="dynamo", nodes=[], num_ops=0)
    with pytest.raises(InputError, match=f"{option}="):
        lay_out(graph, **{option: value})


def test_an_empty_graph_is_an_empty_drawing():
    layout = lay_out(Graph(compile_id="", stage="dynamo", nodes=[], num_ops=0))
    assert (layout.boxes, layout.edges) == ([], [])
