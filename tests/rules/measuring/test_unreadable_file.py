"""Files that no rule could look at; odd ones that can be read are in `tests/rules/lint/test_run.py`."""

from __future__ import annotations

import pytest

from pyrometer.rules.lint.run import lint_bytes
from pyrometer.rules.registry import find_rule, rules


def places(data: bytes) -> list[int]:
    return [
        finding.line for finding in lint_bytes("a.py", data, rules()).findings if finding.code == "PYR092"
    ]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"import torch\nfor batch in loader\n    step(batch)\n", 2),
        (b"import torch\n\nx = '\xff'\n", 3),
        (b"import torch\n\0\n", 2),
        (b"# coding: no-such\n", 1),
    ],
)
def test_it_fires(data, line):
    assert places(data) == [line]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"import torch\n",
        "# coding: latin-1\nx = 'é'\n".encode("latin-1"),
        b"\xef\xbb\xbfimport torch\r\n",
    ],
)
def test_it_stays_silent(data):
    assert places(data) == []


def test_its_advice_ends_it():
    (finding,) = lint_bytes("a.py", b"import torch\n(\n", [find_rule("PYR092")]).findings
    assert finding.advice == "Mend the file, or name it under exclude."
    assert places(b"import torch\n()\n") == []
    assert lint_bytes("a.py", b"import torch\n(\n", []).findings == []
