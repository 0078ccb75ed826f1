"""A place in a program, and how sentences name it."""

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


def place_text(file: str | None, line: int | None) -> str:
    """A line as sentences name it, with the file's name alone.

    >>> place_text("/home/me/project/model.py", 41), place_text("model.py", None), place_text(None, 3)
    ('model.py:41', 'model.py', 'unknown file:3')
    """
    name = file_name(file or "") or "unknown file"
    return name if line is None else f"{name}:{line}"


class Place(Record, frozen=True, kw_only=True):
    """Where in a program, as far as it is known; what is not known is null."""

    file: str | None = None
    line: int | None = None
    function: Annotated[str | None, doc("name of the function it is in")] = None
    source: Annotated[str | None, doc("text of the line; null also where it is withheld")] = None
    module: Annotated[str | None, doc("path of the nn.Module")] = None
    op: Annotated[str | None, doc("operator or kernel")] = None
    phase: Annotated[str | None, doc("forward, backward, optimizer, …")] = None
    rank: int | None = None

    @property
    def path(self) -> str:
        """The file; empty where it is not known."""
        return self.file or ""

    @property
    def line_number(self) -> int:
        """The line; 0 where it is not known."""
        return self.line or 0

    @property
    def function_name(self) -> str:
        """The function; empty where it is not known."""
        return self.function or ""

    @property
    def text(self) -> str:
        """`file:line`, as editors understand it; the file alone without a line, empty without a file."""
        return self.path if self.line is None else f"{self.path}:{self.line}"
