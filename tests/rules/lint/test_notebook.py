from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.advice import FixClass
from pyrometer.errors import InputError
from pyrometer.rules.lint.changing import change_files, fixes
from pyrometer.rules.lint.document import read_document
from pyrometer.rules.lint.files import files_of
from pyrometer.rules.lint.run import lint_paths

EXACT: frozenset[FixClass] = frozenset({"exact"})


def notebook(*cells: str | tuple[str, str], indent: int = 1, **metadata: Any) -> bytes:
    """A notebook as Jupyter writes it; a cell is code, or its type and text."""
    pairs = [cell if isinstance(cell, tuple) else ("code", cell) for cell in cells]
    content = {
        "cells": [
            {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
            for kind, text in pairs
        ],
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(content, indent=indent, ensure_ascii=False) + "\n").encode()


def source(data: bytes, number: int) -> str:
    return "".join(json.loads(data)["cells"][number - 1]["source"])


def test_code_cells_are_one_program_with_a_way_back():
    document = read_document("a.ipynb", notebook(("markdown", "# Title"), "import torch", "x = 1\ny = 2"))
    names = [node.id for node in ast.walk(ast.parse(document.text)) if isinstance(node, ast.Name)]
    assert names == ["x", "y"]
    line = document.text.splitlines().index("y = 2") + 1
    assert document.cell_line(line) == (3, 2)


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nx = 1",
        "!pip install torch",
        "files = !ls\na, b = %time f()",
        "torch.zeros?\nhelp??",
        "?torch",
        "for x in y:\n    %time x",
        "%%bash\nfor x in y; do echo $x; done",
        "%%time\nx = 1",
        "x = '''\n%d\n!\n'''",
        "x = (5\n  % 3)",
        "x = 1\n\n",
        "",
    ],
)
def test_what_only_ipython_understands_is_hidden_and_comes_back(cell: str):
    data = notebook("import torch", cell, "z = 1")
    document = read_document("a.ipynb", data)
    ast.parse(document.text)
    assert document.encode(document.text) == data
    changed = document.encode(document.text.replace("z = 1", "z = 2"))
    assert (source(changed, 2), source(changed, 3)) == (cell, "z = 2")


@given(st.lists(st.text("ab%!?=# \n'", max_size=20), max_size=4))
def test_any_cells_come_back(cells: list[str]):
    data = notebook(*cells)
    document = read_document("a.ipynb", data)
    assert document.encode(document.text) == data


def test_findings_name_the_cell_and_fixes_change_only_it(
    project: Callable[..., Path], slow_call: object, only: Callable[..., Any]
):
    data = notebook(
        "import torch", ("markdown", "slow()"), "# é\nx = slow()", indent=2, kernelspec={"é": 1.5}
    )
    root = project({"a.ipynb": data})
    settings = only("PYR890", root=str(root))
    findings = lint_paths(["."], settings).findings
    assert [(finding.cell, finding.line, finding.column, finding.place) for finding in findings] == [
        (3, 2, 5, "a.ipynb:cell 3:2:5")
    ]
    assert findings[0].fix is not None
    assert findings[0].fix.edits[0].line == 2
    change_files(files_of(["."], settings), settings, fixes(EXACT), write=True)
    assert (root / "a.ipynb").read_bytes() == data.replace(b"x = slow()", b"x = fast()")


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b'{"cells": 3}', b'{"cells": [{}]}', b"\xff", b'{"cells": [{"cell_type": "code"}]}'],
)
def test_what_is_no_notebook_is_refused(data: bytes):
    with pytest.raises(InputError, match=r"a\.ipynb:1: no notebook of format 4"):
        read_document("a.ipynb", data)


def test_a_notebook_in_another_language_has_no_code_for_us():
    assert read_document("a.ipynb", notebook("x <- 1", language_info={"name": "R"})).text == ""


def test_a_notebook_in_another_style_is_read_and_never_rewritten():
    data = json.dumps(json.loads(notebook("x = 1"))).encode()
    document = read_document("a.ipynb", data)
    assert "x = 1" in document.text
    with pytest.raises(InputError, match="not written as Jupyter writes them"):
        document.encode(document.text.replace("1", "2"))


def test_a_change_across_cells_is_refused():
    document = read_document("a.ipynb", notebook("x = 1", "y = 2"))
    with pytest.raises(InputError, match="across cells"):
        document.encode(document.text.replace("# %% cell 2\n", ""))
