from __future__ import annotations

import pytest

from pyrometer.source.edit import apply_edits

PROGRAM = """
import torch
import torch._dynamo


def broken(graph, inputs):
    raise ValueError("no compiler")


def run():
    before = torch._dynamo.config.suppress_errors
    torch._dynamo.config.suppress_errors = True  # <-
    try:
        return torch.compile(lambda x: x * 2, backend=broken)(torch.ones(3))
    finally:
        torch._dynamo.config.suppress_errors = before
"""


def test_it_is_told_and_what_failed_in_silence_then_raises(matches, marked, ran):
    program = ran(PROGRAM)
    (match,) = matches("PYR415", PROGRAM)
    assert [match.line] == marked(PROGRAM)
    assert (program.report.graphs, program.report.skips[0].kind) == (0, "error")

    assert match.fix.fix_class == "semantic"
    fixed = apply_edits(program.source, matches("PYR415", program.source)[0].fix.edits)
    with pytest.raises(Exception, match="no compiler"):
        ran(fixed)


@pytest.mark.parametrize(
    "source",
    [
        "import torch._dynamo\ntorch._dynamo.config.suppress_errors = False\n",
        "import torch._dynamo\nif args.lenient:\n    torch._dynamo.config.suppress_errors = True\n",
        "import torch._dynamo\nold = torch._dynamo.config.suppress_errors\n",
        "config.suppress_errors = True\n",
        "import torch._dynamo\ntorch._dynamo.config.suppress_errors = True\ntorch._dynamo.config.disable = True\n",
    ],
)
def test_near_misses(lines, source):
    assert lines("PYR415", source) == []


def test_other_names_of_the_settings_are_known(lines):
    source = "import torch._dynamo.config as config\nconfig.suppress_errors = True\n"
    assert lines("PYR415", source) == [2]
    assert lines("PYR415", source, "tests/conftest.py") == []
