from __future__ import annotations

import pytest

SIZES = """
import torch


def f(x):
    return x * 2


def run():
    g = torch.compile(f, backend="eager", dynamic=False)
    outputs = []
    for n in range(2, 14):
        x = torch.ones(n)
        outputs.append(g(x)[:n])
    return outputs
"""

VALUES = """
import torch


def f(x, text):
    return x * len(text)


def run():
    g = torch.compile(f, backend="eager")
    return [g(torch.ones(4), "a" * n) for n in range(1, 13)]
"""


def test_a_function_with_too_many_sizes_is_told_with_the_calls_in_silence(ran, findings):
    program = ran(SIZES)
    (finding,) = findings("PYR404", program.evidence)

    assert program.report.limit_reached
    assert finding.where.line == program.line_of("def f(x)")
    assert finding.evidence["limit"] == 8
    assert finding.evidence["silent_calls"] == 3
    assert finding.message.endswith("3 calls ran eagerly")
    assert finding.advice.lever == "shape_buckets"
    assert finding.links == ["/compiled/limits/0"]


def test_padding_to_few_sizes_stays_below_the_limit_with_the_same_results(ran, findings):
    program = ran(SIZES)
    fixed = ran(
        program.source.replace("x = torch.ones(n)", "x = torch.nn.functional.pad(torch.ones(n), (0, -n % 4))")
    )

    assert not fixed.report.limit_reached
    assert fixed.report.graphs < program.report.graphs
    assert findings("PYR404", fixed.evidence) == []
    assert [one.tolist() for one in fixed.output] == [one.tolist() for one in program.output]


def test_without_varying_sizes_the_advice_is_about_values(ran, findings):
    (finding,) = findings("PYR404", ran(VALUES).evidence)
    assert finding.advice.lever is None
    assert "pass it as a tensor" in finding.advice.text


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(SIZES.replace("range(2, 14)", "range(2, 9)"), id="below the limit"),
        pytest.param(SIZES.replace(", dynamic=False", ""), id="open sizes"),
    ],
)
def test_near_misses(ran, findings, source):
    assert findings("PYR404", ran(source).evidence) == []
