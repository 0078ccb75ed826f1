from __future__ import annotations

import textwrap

import pytest
import torch

from pyrometer.source.edit import apply_edits

PROGRAM = """
import torch

model = torch.nn.Linear(4, 4)
torch.compile(model, backend="eager")  # <-


def run():
    return model(torch.ones(2, 4))
"""


def test_a_result_that_is_thrown_away_is_told_and_the_fix_compiles(matches, marked, ran):
    (match,) = matches("PYR416", PROGRAM)
    assert [match.line] == marked(PROGRAM)
    assert match.fix.fix_class == "tolerance"

    program = ran(PROGRAM)
    fixed = ran(apply_edits(program.source, matches("PYR416", program.source)[0].fix.edits))
    assert (program.report.graphs, fixed.report.graphs) == (0, 1)
    assert torch.allclose(fixed.output, program.output)


def test_within_a_function_only_its_own_variables_are_assigned(matches):
    source = """
    import torch

    model = torch.nn.Linear(4, 4)

    def prepare():
        torch.compile(model)

    def prepared(net):
        torch.compile(net)
        return net
    """
    outer, own = matches("PYR416", source)
    assert outer.fix is None
    assert own.fix.edits[0].text == "net = torch.compile(net)"


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nmodel = torch.compile(model)\n",
        "import torch\ntorch.compile(model)(x)\n",
        "import torch\nmodel.compile()\n",
        "import torch\n@torch.compile\ndef f(x):\n    return x\n",
        "import torch\ndef build(model):\n    return torch.compile(model)\n",
        "import re\nre.compile('a')\n",
    ],
)
def test_near_misses(lines, source):
    assert lines("PYR416", textwrap.dedent(source)) == []


def test_tests_may_compile_for_nothing(lines):
    assert lines("PYR416", PROGRAM, "tests/test_model.py") == []
