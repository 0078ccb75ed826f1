"""A file between its bytes and the text that rules read; what rules do not change comes back byte by byte."""

from __future__ import annotations

import codecs
import io
import tokenize
from pathlib import Path
from typing import NamedTuple, Protocol

from pyrometer.errors import InputError
from pyrometer.rules.lint.notebook import Notebook, read_notebook


class CellLine(NamedTuple):
    """A line as people count it: in a notebook, within a cell; cells count from 1."""

    cell: int | None
    line: int


class Document(Protocol):
    """A file that rules can read."""

    @property
    def text(self) -> str:
        """What the rules read; lines of a notebook's cells stand one after the other."""

    def cell_line(self, line: int) -> CellLine:
        """Where a line of the text stands in the file."""

    def encode(self, text: str) -> bytes:
        """The file's content with another text in it.

        Raises:
            InputError: the file's form cannot hold that text.
        """


class SourceText(NamedTuple):
    """An ordinary Python file."""

    text: str
    encoding: str
    mark: bytes

    def cell_line(self, line: int) -> CellLine:
        """The line itself."""
        return CellLine(None, line)

    def encode(self, text: str) -> bytes:
        """The text in the file's own encoding, with its byte order mark if it had one.

        Raises:
            InputError: a character that the encoding does not have.
        """
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise InputError(f"{error.object[error.start]!r} cannot be written in {self.encoding}") from error


def read_document(shown: str, data: bytes) -> Document:
    """Decode a file by its byte order mark, its coding line, or as UTF-8.

    Raises:
        InputError: it is no text in its encoding, or no notebook.
    """
    if Path(shown).suffix == ".ipynb":
        return _Cells(read_notebook(shown, data))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise InputError(f"{shown}:1: {error.msg or 'unknown encoding'}") from error
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InputError(
            f"{shown}:{line}: not {encoding}: {_reason(error)}; say its encoding in line 1"
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{shown}:{line}: a null byte; this is no source text")
    return SourceText(text, encoding, mark)


def _reason(error: UnicodeError) -> str:
    return str(getattr(error, "reason", error))


class _Cells(NamedTuple):
    notebook: Notebook

    @property
    def text(self) -> str:
        return self.notebook.text

    def cell_line(self, line: int) -> CellLine:
        return CellLine(*self.notebook.cell_line(line))

    def encode(self, text: str) -> bytes:
        return self.notebook.encode(text)
