from __future__ import annotations

import msgspec
import pytest
import torch

from pyrometer.rules.case import Case

PROGRAM = """
import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin() * 2


def run():
    return f(torch.ones(3))
"""

CALLED = """
import torch

model = torch.compile(torch.nn.Linear(4, 4), backend="eager")


def run():
    return model(torch.ones(2, 4))
"""

BROKEN = PROGRAM.replace("    return x.sin()", '    x = x.cos()\n    print(end="")\n    return x.sin()')


@pytest.mark.parametrize("source", [PROGRAM, CALLED])
def test_a_whole_graph_is_told_at_the_call_that_could_guard_it(ran, findings, source):
    program = ran(source)
    (finding,) = findings("PYR410", program.evidence)

    assert finding.where.line == program.line_of("torch.compile(")
    assert finding.severity == "info"
    assert finding.advice.rewrite.endswith("fullgraph=True)")
    assert finding.message == "1 graph without a break, but fullgraph=True does not enforce it"


def test_the_rewrite_changes_no_result_and_makes_a_break_an_error(ran, findings):
    program = ran(PROGRAM)
    (finding,) = findings("PYR410", program.evidence)
    given = '@torch.compile(backend="eager")'
    fixed = ran(program.source.replace(given, finding.advice.rewrite.splitlines()[0]))

    assert torch.equal(fixed.output, program.output)
    assert findings("PYR410", fixed.evidence) == []
    with pytest.raises(Exception, match="Failed to trace builtin operator"):
        ran(BROKEN.replace(given, finding.advice.rewrite.splitlines()[0]))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(BROKEN, id="a break"),
        pytest.param(PROGRAM.replace('backend="eager"', 'backend="eager", fullgraph=False'), id="decided"),
        pytest.param(
            PROGRAM.replace("@torch.compile(", "SETTINGS = {}\n\n\n@torch.compile(**SETTINGS, "),
            id="from elsewhere",
        ),
    ],
)
def test_near_misses(ran, findings, source):
    assert findings("PYR410", ran(source).evidence) == []


def test_of_several_calls_only_those_that_were_seen_are_told(ran, findings):
    unseen = '\n\n@torch.compile(backend="eager")\ndef other(x):\n    return x\n'
    program = ran(PROGRAM + unseen)
    (finding,) = findings("PYR410", program.evidence)
    assert finding.where.line == program.line_of("@torch.compile")


def test_what_was_compiled_before_or_for_the_report_only_is_not_told(ran, findings):
    evidence = ran(PROGRAM).evidence
    for changed in ({"incomplete": ["f"]}, {"as_written": False}):
        report = msgspec.structs.replace(evidence.compiled, **changed)
        assert findings("PYR410", Case(target="", compiled=report, modules=evidence.modules)) == []
