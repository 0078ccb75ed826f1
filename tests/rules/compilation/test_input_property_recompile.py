from __future__ import annotations

import pytest
import torch

PROGRAM = """
import torch


def f(x):
    return x * 2


def run():
    g = torch.compile(f, backend="eager")
    inputs = [{first}, {second}]
    outputs = []
    for x in inputs:
        outputs.append(g(x))
    return outputs
"""

CASES = {
    "dtype": ("torch.ones(4)", "torch.ones(4).double()", "x = x.to(torch.float32)"),
    "stride": ("torch.ones(4, 4)", "torch.ones(4, 4).t()", "x = x.contiguous()"),
    "requires_grad": ("torch.ones(4)", "torch.ones(4, requires_grad=True)", "x = x.detach()"),
}

MODE = """
import torch


def f(x):
    return x * 2


def run():
    g = torch.compile(f, backend="eager")
    outputs = [g(torch.ones(4))]
    with torch.{mode}:
        outputs.append(g(torch.ones(4)))
    return outputs
"""


def _program(first: str, second: str) -> str:
    return PROGRAM.format(first=first, second=second)


@pytest.mark.parametrize("kind", CASES)
def test_each_property_is_named_and_its_rewrite_leaves_one_graph(ran, findings, kind):
    first, second, rewrite = CASES[kind]
    program = ran(_program(first, second))
    (finding,) = findings("PYR403", program.evidence)

    assert finding.evidence["property"] == kind
    assert finding.where.line == program.line_of("def f(x)")
    assert finding.advice.rewrite == rewrite
    assert finding.severity == "warning"

    fixed = ran(
        program.source.replace("        outputs.append", f"        {rewrite}\n        outputs.append")
    )
    assert (len(program.report.recompiles), len(fixed.report.recompiles)) == (1, 0)
    assert findings("PYR403", fixed.evidence) == []
    assert all(
        torch.allclose(a.float(), b.float()) for a, b in zip(program.output, fixed.output, strict=True)
    )


def test_a_parameter_where_a_tensor_was(ran, findings):
    (finding,) = findings(
        "PYR403", ran(_program("torch.ones(4)", "torch.nn.Parameter(torch.ones(4))")).evidence
    )
    assert finding.evidence["property"] in {"type", "requires_grad"}
    assert finding.advice.rewrite == "x = x.detach()"


def test_autocast_around_one_call_is_a_change_of_mode(ran, findings):
    (finding,) = findings("PYR403", ran(MODE.format(mode='autocast("cpu")')).evidence)
    assert finding.evidence["property"] in {"global_state", "dispatch"}
    assert "one autocast setting" in finding.advice.text
    assert finding.advice.rewrite is None


def test_one_graph_with_and_one_without_gradients_is_only_worth_knowing(ran, findings):
    (finding,) = findings("PYR403", ran(MODE.format(mode="no_grad()")).evidence)
    assert finding.severity == "info"
    assert "grad mode: true → false" in finding.message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("torch.ones(4)", "torch.zeros(4)", id="the same properties"),
        pytest.param("torch.ones(4)", "torch.ones(5)", id="another size"),
        pytest.param("torch.ones(4)", "torch.ones(4, 4)", id="another rank"),
    ],
)
def test_near_misses(ran, findings, first, second):
    assert findings("PYR403", ran(_program(first, second)).evidence) == []
