"""A place in source text."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

from pyrometer.record import Record, doc


def file_name(path: str) -> str:
    r"""A file's name without folders, also where the path is of another system.

    >>> file_name("/home/me/project/model.py"), file_name(r"C:\project\model.py")
    ('model.py', 'model.py')
    """
    return PurePath(path.replace("\\", "/")).name


def place_text(file: str, line: int) -> str:
    """A line as sentences name it, with the file's name alone.

    >>> place_text("/home/me/project/model.py", 41)
    'model.py:41'
    """
    return f"{file_name(file) or 'unknown file'}:{line}"


class Place(Record, frozen=True, kw_only=True):
    """A line of a program."""

    file: str
    line: int
    function: Annotated[str, doc("name of the function it is in; empty when unknown")] = ""
    source: Annotated[str, doc("text of the line; empty when unknown or withheld")] = ""

    @property
    def text(self) -> str:
        """`file:line`, as editors understand it."""
        return f"{self.file}:{self.line}"
