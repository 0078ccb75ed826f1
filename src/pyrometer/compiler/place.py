"""A place in source text."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc


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
