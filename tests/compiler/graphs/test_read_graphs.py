"""Graphs of real compilations, stage by stage."""

from __future__ import annotations

import pytest
import torch

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.record import KernelOrigin
from pyrometer.compiler.graphs.groups import with_groups
from pyrometer.compiler.graphs.read import read_graphs
from pyrometer.compiler.log import CompileLog, LogEntry


def node_of(graph, name):
    return next(node for node in graph.nodes if node.name == name)


def calls(graph):
    return [node for node in graph.nodes if node.op == "call"]


def test_a_training_step_has_a_graph_per_stage(convolutions):
    assert list(convolutions) == ["dynamo", "joint", "forward", "backward"]
    assert {graph.compile_id for graph in convolutions.values()} == {"0/0"}
    assert convolutions["dynamo"].num_ops == 6
    assert all(graph.text for graph in convolutions.values())


def test_operations_are_those_that_torch_counts(convolutions, transformer):
    for graph in (convolutions["dynamo"], transformer["dynamo"]):
        printed = [
            line
            for line in graph.text.splitlines()
            if " = " in line and "= L_" not in line and "# " not in line
        ]
        unpacked = sum(f"{name}" in line for line in printed for name in ("= chunk[", "= chunk_1["))
        assert graph.num_ops == len(printed) - unpacked


def test_parameters_know_their_module_and_their_name(convolutions):
    for stage in ("dynamo", "joint", "forward"):
        found = {node.parameter: node.role for node in convolutions[stage].nodes if node.parameter}
        assert found["first.weight"] == "parameter"
        assert found["norm.running_mean"] == "buffer"
        assert len(found) == 9


def test_operations_know_their_module(transformer):
    modules = {node.module for node in calls(transformer["dynamo"])}
    assert {"blocks.0.norm", "blocks.0.qkv", "blocks.1.mlp.2"} <= modules
    attention = [node for node in calls(transformer["dynamo"]) if "attention" in node.target]
    assert [node.module for node in attention] == ["blocks.0", "blocks.1"]
    residual = [node for node in calls(transformer["dynamo"]) if node.target == "operator.add"]
    assert [node.module for node in residual] == ["blocks.0", "blocks.0", "blocks.1", "blocks.1"]


def test_modules_reach_the_backward_graph(transformer):
    modules = {node.module for node in calls(transformer["backward"])}
    assert {"blocks.0.qkv", "blocks.1.out", "blocks.0", "blocks.1"} <= modules


def test_operations_know_the_users_line(convolutions):
    relu = next(node for node in calls(convolutions["dynamo"]) if node.target.endswith("relu"))
    assert relu.source == "h = functional.relu(self.norm(self.first(x)))"
    assert (relu.file.rpartition("/")[2], relu.function) == ("conftest.py", "forward")
    assert relu.shape == ["2", "4", "4", "4"]
    assert relu.num_bytes == 2 * 4 * 4 * 4 * 4


def test_what_is_saved_for_the_backward_graph_is_marked(convolutions):
    forward, backward = convolutions["forward"], convolutions["backward"]
    saved = {node.name for node in forward.nodes if node.saved}
    given = {node.name for node in backward.nodes if node.op == "input"}
    assert saved == {name for name in given if not name.startswith("tangents")}
    assert {node.role for node in backward.nodes if node.op == "input"} == {
        "parameter",
        "input",
        "saved",
        "tangent",
    }


def test_open_sizes_are_symbols(compiled):
    graph = compiled(lambda x, n: (x * n).sum(0) + x.shape[0], torch.randn(4, 6), 3, dynamic=True)["dynamo"]
    symbols = [node.name for node in graph.nodes if node.op == "input" and node.role == "symbol"]
    product = next(node for node in calls(graph) if node.target == "operator.mul")
    assert len(symbols) == 3
    assert product.shape == symbols[:2]
    assert product.num_bytes is None


def test_branches_are_subgraphs(compiled):
    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))

    for graph in compiled(branch, torch.randn(4)).values():
        assert len(graph.subgraphs) == 2
        assert [inner.num_ops for inner in graph.subgraphs] == [2, 2]
        assert {inner.compile_id for inner in graph.subgraphs} == {"0/0"}
        assert graph.num_ops == 3 + 4


def test_a_region_that_is_compiled_once_is_one_subgraph(compiled):
    @torch.compiler.nested_compile_region
    def region(x, w):
        return torch.relu(x @ w)

    def repeated(x, w):
        for _ in range(3):
            x = region(x, w)
        return x

    graphs = compiled(repeated, torch.randn(4, 4), torch.randn(4, 4, requires_grad=True), backward=True)
    invoked = [node for node in graphs["dynamo"].nodes if node.target == "higher_order.invoke_subgraph"]
    assert len(invoked) == 3
    assert graphs["dynamo"].subgraphs[0].nodes[-1].op == "output"
    assert "backward" in graphs


def test_several_results_and_changes_in_place(compiled):
    def several(x):
        values, places = torch.topk(x, 2)
        x.add_(1)
        y = x.clone()
        y += 1
        y[0] = 0
        with torch.no_grad():
            z = x.to(torch.float64)
        return values, places, y, z

    graph = compiled(several, torch.randn(4, 4))["dynamo"]
    by_target = {node.target: node for node in calls(graph)}
    assert by_target["operator.iadd"].inputs == [by_target["Tensor.clone"].name]
    assert "operator.setitem" in by_target
    assert "torch._C._set_grad_enabled" in by_target
    assert {node.dtype for node in calls(graph) if node.target == "operator.getitem"} == {"float32", "int64"}


def test_code_that_stands_in_no_file_still_has_modules(compiled):
    names = {"nn": torch.nn}
    exec(
        "class Block(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)\n"
        "    def forward(self, x):\n"
        "        return self.b(self.a(x).sin())\n",
        names,
    )
    graph = compiled(torch.nn.Sequential(names["Block"](), names["Block"]()), torch.randn(2, 4))["dynamo"]
    assert [node.module for node in calls(graph)] == ["0.a", "0", "0.b", "1.a", "1", "1.b"]


def test_models_beside_each_other_keep_their_modules_apart(compiled):
    teacher, student = torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.Linear(4, 4))

    def distill(x, teacher, student):
        return (teacher(x) - student(x)).square().mean()

    graph = compiled(distill, torch.randn(2, 4), teacher, student)["dynamo"]
    modules = {node.module for node in calls(graph) if node.target.endswith("linear")}
    assert modules == {"teacher", "student.0"}


FIRST = CompileId(0, None, 0, 0)
TEXT = 'class GraphModule(torch.nn.Module):\n    def forward(self, {0}: "f32[2][1]cpu"):\n        y = {0}.sin()\n        return (y,)'


def entry(kind, name="x", *, attempt=0, compile_id=FIRST, payload=None):
    text = TEXT.format(name) if payload is None else payload
    return LogEntry(kind=kind, metadata={}, payload=text, compile_id=compile_id, attempt=attempt)


def test_the_last_attempt_counts_and_an_event_beside_its_artifact_counts_once():
    log = CompileLog(
        (
            entry("dynamo_output_graph", "late", attempt=1),
            entry("dynamo_output_graph", "early"),
            entry("inductor_post_grad_graph", "primals_1"),
            entry("inductor_post_grad_graph", "primals_1"),
            entry("inductor_post_grad_graph", "tangents_1"),
            entry("before_pre_grad_graph"),
            entry("something_else"),
        )
    )
    graphs = read_graphs(log)
    assert [graph.stage for graph in graphs] == [
        "dynamo",
        "before_pre_grad",
        "post_grad",
        "post_grad_backward",
    ]
    assert graphs[0].nodes[0].name == "late"


@pytest.mark.parametrize(
    "payload", ["", "???", "tensor(1)\n\x00", "class GraphModule(torch.nn.Module):\n    def forward(self"]
)
def test_unknown_text_is_a_graph_with_what_could_be_read(payload):
    (graph,) = read_graphs(CompileLog((entry("aot_joint_graph", payload=payload, compile_id=None),)))
    assert (graph.stage, graph.compile_id, graph.num_ops, graph.text) == ("joint", "", 0, payload)


def test_ids_keep_their_epoch():
    log = CompileLog(
        (entry("dynamo_output_graph"), entry("dynamo_output_graph", compile_id=CompileId(1, None, 0, 0)))
    )
    assert [graph.compile_id for graph in read_graphs(log)] == ["0/0", "r1:0/0"]


def test_nodes_after_inductors_passes_know_their_kernel():
    graphs = read_graphs(CompileLog((entry("dynamo_output_graph"), entry("inductor_post_grad_graph"))))
    origin = KernelOrigin(compile_id="0/0", kernel="cpp_fused_sin_0", ops=["y"])
    before, after = with_groups(graphs, [origin])
    assert node_of(before, "y").group == ""
    assert (node_of(after, "y").group, node_of(after, "x").group) == ("cpp_fused_sin_0", "")
