"""The lines of the program that a finding speaks of, as its card shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyrometer.place import Place
from pyrometer.report.attachments import FunctionLines, SourceText
from pyrometer.report.documents import Document, EvidenceDocument
from pyrometer.report.facts.finding_views import views

AROUND = 4
"""Lines before and behind a finding's own."""

MOST_OF_FUNCTION = 24
"""Lines behind the beginning of a function, where a finding names no line within it."""


class Line(NamedTuple):
    """One line of the program; without a number it stands for those that are left out."""

    number: int | None
    text: str
    marked: bool = False


def excerpts(document: Document, sources: Sequence[SourceText]) -> dict[str, list[Line]]:
    """The lines of each finding by the id of its card; findings whose lines were not kept have none."""
    if not isinstance(document, EvidenceDocument):
        return {}
    found = {
        view.card.anchor: excerpt(view.card.finding.where, sources)
        for view in views(document.diagnosis.findings)
    }
    return {anchor: lines for anchor, lines in found.items() if lines}


def excerpt(where: Place, sources: Sequence[SourceText]) -> list[Line]:
    """The lines around a place, below the head of their function; a place that is a function shows what is in it.

    >>> kept = SourceText(file="a.py", first_line=1, lines=["def f():", *"bcdefgh"], functions=[
    ...     FunctionLines(first=1, head=1, last=8)])
    >>> [line.text for line in excerpt(Place(file="a.py", line=8), [kept])]
    ['def f():', '⋯', 'd', 'e', 'f', 'g', 'h']
    >>> excerpt(Place(file="a.py", line=9), [kept])
    []
    """
    line = where.line
    kept = {
        number: text for source in sources if source.file == where.file for number, text in _numbered(source)
    }
    if line is None or line not in kept:
        return []
    function = _around(line, sources, where.file)
    last = line + AROUND
    if function is not None and line <= function.head:
        last = max(last, min(function.last, line + MOST_OF_FUNCTION))
    wanted = [*_run(line, -AROUND, kept), line, *_run(line, last - line, kept)]
    lines = [Line(number, kept[number], number == line) for number in wanted]
    if function is not None and function.head in kept and function.head < wanted[0]:
        gap = [Line(None, "⋯")] if function.head < wanted[0] - 1 else []
        lines = [Line(function.head, kept[function.head]), *gap, *lines]
    return lines


def _numbered(text: SourceText) -> Iterator[tuple[int, str]]:
    return enumerate(text.lines, text.first_line)


def _around(line: int, sources: Sequence[SourceText], file: str | None) -> FunctionLines | None:
    """The innermost function that holds a line, where it is known."""
    holding = [
        function
        for text in sources
        if text.file == file
        for function in text.functions
        if function.first <= line <= function.last
    ]
    return max(holding, key=lambda lines: lines.first, default=None)


def _run(line: int, wide: int, kept: dict[int, str]) -> list[int]:
    """Up to so many lines next to one, without a gap; before it where `wide` is below zero."""
    step = 1 if wide > 0 else -1
    found: list[int] = []
    for number in range(line + step, line + wide + step, step):
        if number not in kept:
            break
        found.append(number)
    return found if step > 0 else found[::-1]
