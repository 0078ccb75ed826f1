"""Notebooks as one Python text: code cells one after the other, and back into the file.

A line that marks the cell stands before each; what IPython alone understands becomes a comment of the same line.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from typing import Any, NamedTuple

from pyrometer.errors import InputError

_MARK = "# %% cell "
_HIDDEN = "# ipython: "
_MAGIC = re.compile(
    r"^(?P<indent>[ \t]*)(?=[%!?]|[\w, \t]+=[ \t]*[%!]|[^#'\"\n]*\?{1,2}[ \t]*$)", re.MULTILINE
)
_RESTORE = re.compile(rf"^(?P<indent>[ \t]*)pass  {re.escape(_HIDDEN)}", re.MULTILINE)
_OTHER_LANGUAGE = re.compile(r"^\s*%%(?!time\b|timeit\b|capture\b|prun\b)")
_BOUNDARY = re.compile(rf"^{re.escape(_MARK)}(\d+)\n", re.MULTILINE)


class Notebook(NamedTuple):
    """A notebook and the text of its code cells.

    Attributes:
        text: of all code cells, each after a line that marks it.
        content: the parsed file.
        indent: spaces per level of the file's JSON.
        data: the file as it was.
    """

    text: str
    content: dict[str, Any]
    indent: int
    data: bytes

    def cell_line(self, line: int) -> tuple[int | None, int]:
        """The cell, from 1 among all cells, and the line within it."""
        marks = [number for number, text in enumerate(self.text.split("\n"), 1) if text.startswith(_MARK)]
        index = bisect_right(marks, line) - 1
        if index < 0:
            return None, line
        cell = int(self.text.split("\n")[marks[index] - 1].removeprefix(_MARK))
        return cell, line - marks[index]

    def encode(self, text: str) -> bytes:
        """The file with another text in its cells.

        Raises:
            InputError: the cells cannot be told apart, or the file is not written as notebooks are, so that more than
                the cells would change.
        """
        if self._dump(self.content) != self.data:
            raise InputError("this notebook is not written as Jupyter writes them; save it there once")
        pieces = _BOUNDARY.split(text)
        if pieces[1::2] != _BOUNDARY.split(self.text)[1::2] or pieces[0]:
            raise InputError("a change across cells of a notebook")
        content = json.loads(self.data)
        for number, source in zip(pieces[1::2], pieces[2::2], strict=True):
            _put(content["cells"][int(number) - 1], _shown(source.removesuffix("\n")))
        return self._dump(content)

    def _dump(self, content: dict[str, Any]) -> bytes:
        end = "\n" if self.data.endswith(b"\n") else ""
        return (json.dumps(content, indent=self.indent, ensure_ascii=False) + end).encode()


def read_notebook(shown: str, data: bytes) -> Notebook:
    """Read the code cells of a notebook in Python.

    Raises:
        InputError: the file is no notebook.
    """
    try:
        content = json.loads(data)
        cells = content["cells"]
        language = content.get("metadata", {}).get("language_info", {}).get("name", "python")
        code = [
            (number, _source(cell)) for number, cell in enumerate(cells, 1) if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{shown}:1: no notebook of format 4: {error!r}") from error
    if language != "python":
        code = []
    text = "".join(f"{_MARK}{number}\n{_hidden(source)}\n" for number, source in code)
    indent = re.match(rb"\{\n( *)", data)
    return Notebook(text, content, len(indent[1]) if indent else 1, data)


def _source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _put(cell: dict[str, Any], source: str) -> None:
    cell["source"] = source if isinstance(cell["source"], str) else source.splitlines(keepends=True)


def _hidden(source: str) -> str:
    """A cell with its magics hidden; one that is plain Python has none, whatever its lines begin with."""
    if _is_python(source):
        return source
    if _OTHER_LANGUAGE.match(source):
        return "\n".join(f"pass  {_HIDDEN}{line}" for line in source.split("\n"))
    return _MAGIC.sub(rf"\g<indent>pass  {_HIDDEN}", source)


def _is_python(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _shown(text: str) -> str:
    return _RESTORE.sub(r"\g<indent>", text)
