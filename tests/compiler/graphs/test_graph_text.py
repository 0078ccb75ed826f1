"""Reading printed graphs: what torch 2.13 prints, and anything else without an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.compiler.graphs.annotation import Value, read_annotation
from pyrometer.compiler.graphs.read import graph_of
from pyrometer.compiler.graphs.text import read_bodies

HEAD = 'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[2, 3][3, 1]cpu", s0: "Sym(s0)"):\n'


def nodes_of(*lines):
    text = HEAD + "".join(f"        {line}\n" for line in lines)
    return {node.name: node for node in read_bodies(text)[0].nodes}


@pytest.mark.parametrize(
    ("line", "target", "inputs"),
    [
        ("y = torch.ops.aten.add.Tensor(s0, x, alpha = 2)", "aten.add.Tensor", ["s0", "x"]),
        ("y = torch._C._nn.gelu(x, approximate = 'tanh')", "torch.nn.functional.gelu", ["x"]),
        ("y = x @ x", "operator.matmul", ["x"]),
        ("y = x > 0", "operator.gt", ["x"]),
        ("y = -x", "operator.neg", ["x"]),
        ("y = 2 ** x", "operator.pow", ["x"]),
        ("y = x[(slice(None, 2, None), s0)]", "operator.getitem", ["x", "s0"]),
        ("y = x.view(-1, s0)", "Tensor.view", ["x", "s0"]),
        ("y = x.shape", "Tensor.shape", ["x"]),
        ("x += s0;  y = x", "operator.iadd", ["x", "s0"]),
        ("x[(0, s0)] = 1;  y = x;  y = None", "operator.setitem", ["x", "s0"]),
        ("x @= x;  y = x", "operator.imatmul", ["x"]),
        ("y = self.layers.fc(x)", "layers.fc", ["x"]),
        ('y = getattr(self.layers, "0")(x)', "layers.0", ["x"]),
        (
            "y = torch.ops.aten.full.default([], 0.0, device = device(type='cpu'), pin_memory = False)",
            "aten.full.default",
            [],
        ),
        ("y = torch.ops.aten.cat.default([x, x, s0], -1);  x = None", "aten.cat.default", ["x", "s0"]),
        ("y = torch.foo(<generator object at 0x7f>, x)", "torch.foo", ["x"]),
        ("y = torch.ops.mylib.op.default(x, float('-inf'), inf)", "mylib.op.default", ["x"]),
    ],
)
def test_what_is_called_and_what_it_reads(line, target, inputs):
    node = nodes_of(line)["y"]
    assert (node.op, node.target, node.inputs) == ("call", target, inputs)


def test_attributes_are_no_calls():
    nodes = nodes_of("a = self._tensor_constant0", 'b = getattr(self, "0")', "c = self.inner.weight")
    assert {name: (node.op, node.target) for name, node in nodes.items() if name in "abc"} == {
        "a": ("attribute", "_tensor_constant0"),
        "b": ("attribute", "0"),
        "c": ("attribute", "inner.weight"),
    }


def test_types_and_places():
    nodes = nodes_of(
        "# File: /src/my dir/model.py:12 in forward, code: y = x.sin()  # 5: half",
        'y: "bf16[2, s0][s0, 1]cuda:1" = x.sin();  x = None',
        "# Annotation: {'call_id': 2} recompute: MUST_SAVE File: a.py:3 in <lambda>, code:",
        'n: "Sym(2*s0)" = s0 * 2',
        "# No stacktrace found for following nodes",
        'z: "f64[2, 2][2, 1]cpu" = y.double()',
    )
    y, n, z = nodes["y"], nodes["n"], nodes["z"]
    assert (y.dtype, y.shape, y.stride, y.device, y.num_bytes) == (
        "bfloat16",
        ["2", "s0"],
        ["s0", "1"],
        "cuda:1",
        None,
    )
    assert (y.file, y.line, y.function, y.source) == (
        "/src/my dir/model.py",
        12,
        "forward",
        "y = x.sin()  # 5: half",
    )
    assert (n.symbol, n.dtype, n.file, n.line, n.function) == ("2*s0", "", "a.py", 3, "<lambda>")
    assert (z.file, z.line, z.num_bytes) == ("", 0, 32)
    assert (nodes["x"].num_bytes, nodes["s0"].symbol) == (24, "s0")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32[]", Value("float32", num_bytes=4)),
        ("b8[0][1]cpu", Value("bool", ("0",), ("1",), "cpu", num_bytes=0)),
        ("f32[Max(1, s0), 2][2, 1]cpu", Value("float32", ("Max(1, s0)", "2"), ("2", "1"), "cpu")),
        ("DTensor(f32[4][1]cuda:0, S(0))", Value("float32", ("4",), ("1",), "cuda:0", num_bytes=16)),
        ("q99[4][1]cpu", Value("q99", ("4",), ("1",), "cpu")),
        ("f32[4", Value("float32", ("4",), num_bytes=16)),
        ("", Value()),
    ],
)
def test_annotations(text, value):
    assert read_annotation(text) == value


def test_a_name_that_is_assigned_twice_gives_two_nodes():
    nodes = nodes_of("y = x.sin()", "y = y.cos()", "z = y + x")
    assert nodes["y:2"].inputs == ["y"]
    assert nodes["z"].inputs == ["y:2", "x"]


def test_one_damaged_line_costs_no_other_line():
    nodes = nodes_of("y = x.sin()", "z = ((y", "w = y.cos()", "!!", "return (w,)")
    assert set(nodes) == {"x", "s0", "y", "z", "w", "output"}
    assert nodes["z"].inputs == ["y"]


PIECES = st.sampled_from(
    [
        HEAD,
        "class <lambda>(torch.nn.Module):\n",
        "    class inner(torch.nn.Module):\n        def forward(self, a):\n",
        "        def forward(\n            self,\n            a,  # PlainAOTInput(idx=0)\n        ):\n",
        "        y = x.sin();  x = None\n",
        '        y: "f32[2" = y\n',
        "        y = y\n",
        "        a, b, = fx_pytree.tree_flatten_spec([x, y], self._in_spec)\n",
        "        y += y\n",
        "        return (\n            y,  # Plain\n",
        "        # File: x.py:99999999999999999999 in f, code: \n",
        "        y = (" + "(" * 300 + "\n",
        "\x00\n",
        "\tx = [\n",
        "return\n",
        "def f(*a, **k): return x\n",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=12).map("".join))
def test_any_text_gives_an_acyclic_graph_and_no_error(text):
    graph = graph_of(read_bodies(text), stage="dynamo")
    for subgraph in (graph, *graph.subgraphs):
        seen = set()
        for node in subgraph.nodes:
            assert set(node.inputs) <= seen, "a node reads only what stands before it"
            assert node.name not in seen, "names are unique"
            seen.add(node.name)


@given(st.text(alphabet="f32[]()s0, +Symcpu:1", max_size=30))
def test_any_annotation_is_read_without_error(text):
    assert isinstance(read_annotation(text), Value)


def test_a_thousand_inputs_take_no_quadratic_time():
    signature = ", ".join(f'L_x{number}_: "f32[2][1]cpu"' for number in range(3000))
    aliases = "".join(f"        l_x{number}_ = L_x{number}_\n" for number in range(3000))
    text = f"class GraphModule(torch.nn.Module):\n    def forward(self, {signature}):\n{aliases}"
    nodes = read_bodies(text)[0].nodes
    assert [node.name for node in nodes[:2]] == ["l_x0_", "l_x1_"]
    assert len(nodes) == 3000
