from __future__ import annotations

import textwrap

import pytest
import torch

from pyrometer.rules.case import Case

COUNTER = """
import torch


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x / self.step


def run():
    model = torch.compile(Counter(), backend="eager")
    return [model(torch.ones(3)) for _ in range(4)]
"""

BUFFER = COUNTER.replace(
    "self.step = 0", 'self.register_buffer("step", torch.zeros((), dtype=torch.long))'
).replace("self.step += 1", "self.step.add_(1)")


def test_a_counter_is_told_once_with_its_values(ran, findings):
    program = ran(COUNTER)
    (finding,) = findings("PYR413", program.evidence)

    assert finding.where.line == program.line_of("self.step += 1")
    assert finding.evidence["attribute"] == "self.step"
    assert finding.evidence["values"] == ["0", "1", "2", "3"]
    assert finding.evidence["recompiles"] == 3
    assert finding.advice.rewrite == "torch._dynamo.config.allow_unspec_int_on_nn_module = True"
    assert findings("PYR402", program.evidence) == []


def test_without_the_text_the_function_is_the_place(ran, findings):
    program = ran(COUNTER)
    (finding,) = findings("PYR413", Case(target="", compiled=program.report))
    assert finding.where.line == program.line_of("def forward")


def test_a_buffer_leaves_one_graph_with_the_same_results(ran, findings, lines):
    program, fixed = ran(COUNTER), ran(BUFFER)

    assert (program.report.graphs, fixed.report.graphs) == (4, 1)
    assert findings("PYR413", fixed.evidence) == []
    assert all(map(torch.equal, fixed.output, program.output))


def test_the_setting_leaves_two_graphs_with_the_same_results(ran, findings):
    program = ran(COUNTER)
    fixed = ran(
        program.source.replace(
            "    model =",
            "    with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=True):\n        return counted()\n\n\n"
            "def counted():\n    model =",
        )
    )
    assert fixed.report.graphs <= 2
    assert findings("PYR413", fixed.evidence) == []
    assert all(map(torch.equal, fixed.output, program.output))


def test_the_text_shows_it_too(lines, marked):
    source = COUNTER.replace("self.step += 1", "self.step += 1  # <-")
    assert lines("PYR413", source) == marked(source)


def _module(init: str, forward: str, compiled: str = "model = torch.compile(Net())") -> str:
    return (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {init}\n\n    def forward(self, x):\n        {forward}\n        return x\n\n\n{compiled}\n"
    )


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(_module("self.n = 0", "self.n += 1", "model = Net()"), id="eager"),
        pytest.param(_module("self.n = 0.5", "self.n += 1"), id="a float"),
        pytest.param(_module("self.n = torch.zeros(1)", "self.n += 1"), id="a tensor"),
        pytest.param(_module("self.n = 0", "n = self.n + 1"), id="only read"),
        pytest.param(
            _module("self.n = 0", "if not torch.compiler.is_compiling():\n            self.n += 1"),
            id="left out of compiled code",
        ),
        pytest.param(
            "import torch._dynamo.config\ntorch._dynamo.config.allow_unspec_int_on_nn_module = True\n"
            + _module("self.n = 0", "self.n += 1"),
            id="opened",
        ),
    ],
)
def test_near_misses_in_source(lines, source):
    assert lines("PYR413", textwrap.dedent(source)) == []


FLOAT = COUNTER.replace("self.step = 0", "self.step = 1.0").replace("self.step += 1", "self.step *= 0.5")
CONSTANT = COUNTER.replace("        self.step += 1\n", "").replace("self.step = 0", "self.step = 2")


@pytest.mark.parametrize("source", [FLOAT, CONSTANT], ids=["float", "constant"])
def test_near_misses_in_records(ran, findings, source):
    assert findings("PYR413", ran(source).evidence) == []
