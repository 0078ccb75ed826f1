from __future__ import annotations

import msgspec
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.explain import findings_of
from pyrometer.rules.ranking import ranked
from pyrometer.rules.registry import find_rule

LOOP = """
import torch


@torch.compile(backend="eager")
def f(x):
    for i in range(3):
        x = x + i
        print(end="")
    return x


def run():
    return f(torch.ones(3))
"""

FAILING = """
import torch
import torch._dynamo


def broken(graph, inputs):
    raise ValueError("no compiler")


def f(x):
    return x * 2


def run():
    with torch._dynamo.config.patch(suppress_errors=True):
        return torch.compile(f, backend=broken)(torch.ones(3))
"""

ON_PURPOSE = """
import torch


@torch.compile(backend="eager")
def f(x):
    torch._dynamo.skip_frame("not here")
    return x * 2


def run():
    return f(torch.ones(3))
"""


def test_a_function_given_up_for_a_break_in_a_loop(ran, findings):
    program = ran(LOOP)
    (finding,) = findings("PYR412", program.evidence)

    assert finding.where.line in {program.line_of("def f"), program.line_of("@torch.compile")}
    assert f"skips it at line {program.line_of('print')}" in finding.message
    assert "runs eagerly" in finding.message
    assert finding.links == ["/compiled/skips/0"]


def test_it_counts_the_same_as_the_break(ran):
    evidence = ran(LOOP).evidence
    findings = ranked(findings_of(evidence, [find_rule("PYR401"), find_rule("PYR412")]))
    assert [(finding.code, finding.overlaps) for finding in findings] == [
        ("PYR401", []),
        ("PYR412", ["PYR401"]),
    ]


def test_with_the_break_out_of_the_loop_the_function_is_compiled(ran, findings):
    program = ran(LOOP)
    fixed = ran(program.source.replace('        print(end="")\n', ""))

    assert (program.report.graphs, fixed.report.graphs) == (0, 1)
    assert findings("PYR412", fixed.evidence) == []
    assert torch.equal(fixed.output, program.output)


def test_a_suppressed_failure_of_the_compiler(ran, findings):
    (finding,) = findings("PYR412", ran(FAILING).evidence)
    assert "no compiler" in finding.message
    assert finding.evidence["kind"] == "error"
    assert "suppress_errors = False" in finding.advice.text


def test_near_misses(ran, findings):
    whole = LOOP.replace('        print(end="")\n', "")
    assert findings("PYR412", ran(whole).evidence) == []
    assert findings("PYR412", ran(ON_PURPOSE).evidence) == []


@pytest.mark.parametrize("kind", ["recompile_limit", "raised", "rule"])
def test_what_other_rules_or_nobody_should_tell(ran, findings, kind):
    report = ran(LOOP).report
    skips = [msgspec.structs.replace(report.skips[0], kind=kind)]
    evidence = Case(target="", compiled=msgspec.structs.replace(report, skips=skips))
    assert findings("PYR412", evidence) == []
