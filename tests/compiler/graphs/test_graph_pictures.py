"""Pictures and tables: well formed, safe whatever names and sources hold, and complete."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pyrometer.compiler.graphs.dot import graph_dot
from pyrometer.compiler.graphs.layout import lay_out
from pyrometer.compiler.graphs.ops import KINDS, op_kind
from pyrometer.compiler.graphs.record import Graph, GraphLayout, GraphNode
from pyrometer.compiler.graphs.svg import graph_svg
from pyrometer.compiler.graphs.table import graph_text
from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json

SVG = "{http://www.w3.org/2000/svg}"
CANARY = '</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>"]; evil [label="'


def hostile(text):
    node = GraphNode(
        name=f"a{text}",
        op="call",
        target=f"aten.{text}",
        module=text,
        file=text,
        line=1,
        source=text,
        dtype=text,
        group=text,
    )
    owner = GraphNode(name=f"w{text}", op="input", role="parameter", parameter=text, module=text)
    other = GraphNode(name="b", op="call", target=text, inputs=[node.name, owner.name], symbol=text)
    return Graph(compile_id=text, stage="dynamo", nodes=[owner, node, other], num_ops=2, name=text)


def boxes_of(svg):
    return [group for group in ET.fromstring(svg).iter(f"{SVG}g") if "data-box" in group.attrib]


@pytest.mark.parametrize("colour_by", ["kind", "dtype", "group"])
def test_a_picture_shows_every_box_and_every_line(convolutions, colour_by):
    for graph in convolutions.values():
        layout = lay_out(graph)
        svg = graph_svg(layout, colour_by=colour_by)
        assert len(boxes_of(svg)) == len(layout.boxes)
        lines = [path for path in ET.fromstring(svg).iter(f"{SVG}path") if path.get("class") == "fx-edge"]
        assert len(lines) == len(layout.edges)


def test_a_picture_stands_alone(transformer):
    svg = graph_svg(lay_out(transformer["forward"]))
    assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "<script" not in svg
    assert "prefers-color-scheme:dark" in svg
    assert len(svg) < 100_000


def test_tooltips_tell_type_size_and_the_users_line(convolutions):
    svg = graph_svg(lay_out(convolutions["dynamo"]))
    titles = [group.findtext(f"{SVG}title") for group in boxes_of(svg)]
    relu = next(title for title in titles if "functional.relu" in title.partition("\n")[2])
    assert "f32[2, 4, 4, 4]  512 B" in relu
    assert "h = functional.relu(self.norm(self.first(x)))" in relu


def test_marks_frame_the_boxes_of_a_line_or_node(convolutions):
    graph = convolutions["dynamo"]
    mean = next(node for node in graph.nodes if node.target == "Tensor.mean")
    svg = graph_svg(lay_out(graph), marks={f"{mean.file}:{mean.line}": "graph break gb0170", "none": "never"})
    marked = [group for group in boxes_of(svg) if "fx-marked" in group.get("class")]
    assert len(marked) == 2
    assert all(group.findtext(f"{SVG}title").startswith("graph break gb0170") for group in marked)


def test_colours_by_group_are_told_in_the_legend():
    nodes = [
        GraphNode(name=name, op="call", target="aten.add.Tensor", group=group)
        for name, group in (("a", "kernel_0"), ("b", "kernel_1"), ("c", ""))
    ]
    svg = graph_svg(
        lay_out(Graph(compile_id="", stage="post_grad", nodes=nodes, num_ops=3)), colour_by="group"
    )
    assert {"kernel_0", "kernel_1", "–"} <= {text.text for text in ET.fromstring(svg).iter(f"{SVG}text")}
    assert len({group.get("style") for group in boxes_of(svg)}) == 3


@given(st.one_of(st.just(CANARY), st.text(max_size=20)))
def test_whatever_names_hold_stays_text(text):
    graph = hostile(text)
    svg = graph_svg(lay_out(graph), marks={"b": text})
    kinds = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert kinds <= {
        "svg",
        "style",
        "defs",
        "marker",
        "path",
        "rect",
        "text",
        "tspan",
        "g",
        "title",
        "circle",
    }
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', graph_dot(graph), flags=re.DOTALL)
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', graph_dot(graph), flags=re.DOTALL)
    assert strings
    assert set(re.findall(r"\w+", bare)) <= {
        *(
            "digraph",
            "rankdir",
            "TB",
            "node",
            "edge",
            "shape",
            "box",
            "style",
            "fontname",
            "fontsize",
            "color",
            "label",
        ),
        *("tooltip", "fillcolor", "9", "11", "box0", "box1", "box2"),
    }
    assert graph_text(graph)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not here")
def test_graphviz_takes_our_text():
    done = subprocess.run(
        ["dot", "-Tsvg"], input=graph_dot(hostile(CANARY)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_dot_has_the_boxes_and_lines_of_the_drawing(transformer):
    graph = transformer["joint"]
    layout, text = lay_out(graph, collapse="line"), graph_dot(graph, collapse="line")
    assert len(re.findall(r"^  box\d+ \[", text, flags=re.MULTILINE)) == len(layout.boxes)
    assert len(re.findall(r"^  box\d+ -> box\d+ \[", text, flags=re.MULTILINE)) >= len(layout.edges)


def test_the_table_reads_like_the_program(convolutions):
    lines = graph_text(convolutions["dynamo"]).splitlines()
    assert lines[0].startswith("0/0 dynamo: 6 operations, 10 inputs of ")
    assert "  of  head: weight f32[5, 4], bias f32[5]" in lines
    heading = next(
        place for place, line in enumerate(lines) if line.endswith("return self.head(h.mean((2, 3)))")
    )
    assert re.match(r"  mean +\.mean\(h\) +f32\[2, 4\]  32 B$", lines[heading + 1])
    assert re.match(
        r"  linear +F\.linear\(mean, weight, bias\) +f32\[2, 5\]  40 B +head$", lines[heading + 2]
    )
    assert max(map(len, lines)) < 160


def test_the_table_is_narrower_and_shorter_than_torchs_own_text(transformer):
    for graph in transformer.values():
        own, torchs = graph_text(graph).splitlines(), graph.text.splitlines()
        assert len(own) < len(torchs)
        assert max(map(len, own)) < min(170, max(map(len, torchs)))


def test_parts_of_a_result_stand_in_its_row(transformer):
    text = graph_text(transformer["dynamo"])
    assert re.search(r"  \w+, \w+, \w+ +\.chunk\(linear\) +f32\[2, 4, 8\]  768 B +blocks\.0", text)


def test_a_drawing_survives_a_file(convolutions):
    layout = lay_out(convolutions["forward"])
    assert from_json(GraphLayout, to_json(layout)) == layout
    graph = replace(convolutions["forward"], subgraphs=[convolutions["dynamo"]])
    assert from_json(Graph, to_json(graph)) == graph


def test_every_operation_of_real_models_has_a_class(convolutions, transformer):
    kinds = {}
    for graph in (*convolutions.values(), *transformer.values()):
        kinds |= {node.target: op_kind(node) for node in graph.nodes if node.op == "call"}
    assert set(kinds.values()) <= set(KINDS)
    assert kinds["aten.convolution_backward.default"] == "convolution"
    assert kinds["aten.native_layer_norm_backward.default"] == "normalization"
    assert kinds["torch.nn.functional.scaled_dot_product_attention"] == "attention"
    assert kinds["aten.addmm.default"] == "matmul"
    assert kinds["aten.view.default"] == kinds["operator.getitem"] == "view"
    assert kinds["aten.relu.default"] == kinds["operator.add"] == "pointwise"


def test_a_colouring_that_does_not_exist_is_refused(convolutions):
    with pytest.raises(InputError, match="colour_by='size'"):
        graph_svg(lay_out(convolutions["dynamo"]), colour_by="size")
