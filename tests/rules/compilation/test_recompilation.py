from __future__ import annotations

import msgspec
import pytest
import torch

from pyrometer.compiler.inspection.record import Runtime
from pyrometer.rules.case import Case

SIZES = """
import torch


def f(x):
    return x.sin() * 2


def run():
    g = torch.compile(f, backend="eager")
    return [g(torch.ones(n, 4)) for n in (4, 5, 6)]
"""

STATIC = SIZES.replace('backend="eager"', 'backend="eager", dynamic=False')

NUMBERS = """
import torch


def f(x, text):
    return x * len(text)


def run():
    g = torch.compile(f, backend="eager")
    return [g(torch.ones(4), text) for text in ("a", "bb")]
"""

MODES = """
import torch


def run():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout())
    compiled = torch.compile(model, backend="eager")
    compiled(torch.ones(2, 4))
    model.eval()
    return compiled(torch.ones(2, 4))
"""

STEADY = """
import torch


def run():
    g = torch.compile(torch.sin, backend="eager")
    return [g(torch.ones(4)) for _ in range(3)]
"""

DTYPES = """
import torch


def run():
    g = torch.compile(lambda x: x * 2, backend="eager")
    return [g(torch.ones(4)), g(torch.ones(4).double())]
"""


def test_a_size_that_was_opened_names_the_input_the_values_and_the_mark(ran, findings):
    program = ran(SIZES)
    (finding,) = findings("PYR402", program.evidence)

    assert finding.message.startswith("f was compiled 1 more time in ")
    assert finding.message.endswith("x, dimension 0: 4 → 5; torch now compiles for any value of it")
    assert finding.where.line == program.line_of("def f(x)")
    assert finding.evidence["guard"] == "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    assert finding.advice.rewrite == "torch._dynamo.mark_dynamic(x, 0)"
    assert (finding.advice.lever, finding.severity) == ("mark_dynamic", "info")
    assert finding.advice.gain is None


def test_the_mark_spares_the_compilation_and_changes_no_result(ran, findings):
    program = ran(SIZES)
    (finding,) = findings("PYR402", program.evidence)
    fixed = ran(
        program.source.replace(
            "return [g(torch.ones(n, 4)) for n in (4, 5, 6)]",
            f"outputs = []\n    for n in (4, 5, 6):\n        x = torch.ones(n, 4)\n        {finding.advice.rewrite}\n"
            "        outputs.append(g(x))\n    return outputs",
        )
    )

    assert (len(program.report.recompiles), len(fixed.report.recompiles)) == (1, 0)
    assert findings("PYR402", fixed.evidence) == []
    assert all(map(torch.equal, fixed.output, program.output))


def test_sizes_that_stay_fixed_are_one_finding_with_all_values(ran, findings):
    (finding,) = findings("PYR402", ran(STATIC).evidence)

    assert finding.evidence["recompiles"] == 2
    assert finding.evidence["values"] == ["4", "5", "6"]
    assert (finding.advice.lever, finding.severity) == ("shape_buckets", "warning")
    assert finding.links == ["/compiled/recompiles/0", "/compiled/recompiles/1"]


def test_padding_to_one_size_leaves_one_graph(ran, findings):
    fixed = STATIC.replace("torch.ones(n, 4)", "torch.nn.functional.pad(torch.ones(n, 4), (0, 0, 0, 8 - n))")
    assert findings("PYR402", ran(fixed).evidence) == []
    assert [len(one) for one in ran(fixed).output] == [8, 8, 8]


def test_a_text_that_changes_is_told_with_what_the_report_says_about_it(ran, findings):
    (finding,) = findings("PYR402", ran(NUMBERS).evidence)

    assert "text: 'a' → 'bb'" in finding.message
    assert "every other text compiles anew" in finding.advice.text
    assert finding.advice.lever is None


@pytest.mark.parametrize(
    "source", [STEADY, MODES, DTYPES], ids=["nothing changes", "train and eval", "dtype"]
)
def test_near_misses(ran, findings, source):
    assert findings("PYR402", ran(source).evidence) == []


def test_the_time_is_spread_over_the_run_that_the_report_assumes(ran, findings):
    report = msgspec.structs.replace(ran(STATIC).report, runtime=Runtime(run_steps=100))
    (finding,) = findings("PYR402", Case(target="", compiled=report))
    seconds = sum(recompile.compile_s for recompile in report.recompiles)
    assert finding.cost.seconds_per_step == pytest.approx(seconds / 100)
    assert "over a run of 100 steps" in finding.cost.method
