"""A place in code, cheap to take while a program runs, and the line that it stands for."""

from __future__ import annotations

import linecache
from functools import cache
from types import CodeType
from typing import NamedTuple


class CodePoint(NamedTuple):
    """An instruction of a function; `site_of` turns it into file and line when somebody asks."""

    code: CodeType
    instruction: int


class Site(NamedTuple):
    """A line of code."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """As `file:line`."""
        return f"{self.file}:{self.line}"

    @property
    def source(self) -> str | None:
        """The line's text, where the file can be read."""
        return linecache.getline(self.file, self.line).strip() or None


@cache
def site_of(point: CodePoint) -> Site:
    """File, line and function of a place in code; the function with its class where Python tells it."""
    return Site(
        point.code.co_filename, _line_of(point), getattr(point.code, "co_qualname", point.code.co_name)
    )


def _line_of(point: CodePoint) -> int:
    line = point.code.co_firstlineno
    for first, last, number in point.code.co_lines():
        if number is not None and first <= point.instruction < last:
            line = number
    return line
