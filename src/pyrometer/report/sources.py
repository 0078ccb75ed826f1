"""The user's lines that a document speaks of, with what stands around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import cast

from pyrometer.compiler.report import CompileReport
from pyrometer.memory.profile import MemoryProfile
from pyrometer.report.documents import CheckDocument, CompileDocument, Document, MemoryDocument
from pyrometer.report.exhibits import SourceText

MOST_LINES = 2_000
"""Lines that are kept over all files."""

MOST_BYTES = 4 * 2**20
"""A longer file is no source that someone wrote."""

_SUFFIXES = frozenset({".py", ".pyi", ".pyx"})
"""Nothing but programs is read: a document may come from anyone, and name anything."""


def places_to_show(document: Document) -> dict[str, set[int]]:
    """Lines of the user's files at breaks, recompilations, guards, findings and leaks, by the file's name in the document."""
    found: dict[str, set[int]] = {}
    for file, line in _named(document):
        if file and line and line > 0:
            found.setdefault(file, set()).add(line)
    return found


def compile_of(document: Document) -> CompileReport | None:
    """What torch.compile did, where the document tells it; a document of `pyrometer compile` is such a report itself."""
    if isinstance(document, CheckDocument):
        return document.compiled
    return cast("CompileReport", document) if isinstance(document, CompileDocument) else None


def read_sources(document: Document, *, around: int = 6) -> list[SourceText]:
    """Read the lines around every place that a document names; what is no readable Python file is left out.

    Args:
        document: names the files; no other file is opened.
        around: lines before and behind each place.
    """
    found: list[SourceText] = []
    left = MOST_LINES
    for file, lines in sorted(places_to_show(document).items()):
        text = _lines_of(Path(file))
        for first, last in _stretches(lines, around, len(text)):
            taken = text[first - 1 : min(last, first - 1 + left)]
            if taken:
                found.append(SourceText(file=file, first_line=first, lines=taken))
            left -= len(taken)
    return found


def _named(document: Document) -> Iterator[tuple[str | None, int | None]]:
    report = compile_of(document)
    if report is not None:
        yield from _of_compile(report)
    if isinstance(document, CheckDocument):
        yield from ((one.where.file, one.where.line) for one in document.findings)
    profiled = document.memory_profile if isinstance(document, CheckDocument) else document
    leak = profiled.leak if isinstance(profiled, (MemoryProfile, MemoryDocument)) else None
    if leak is not None:
        yield from ((one.file, one.line) for one in leak.sites)


def _of_compile(report: CompileReport) -> Iterable[tuple[str | None, int | None]]:
    causes = [*(one.causes for one in report.recompiles), *(one.causes for one in report.limits)]
    return chain(
        ((one.file, one.line) for one in report.breaks),
        ((one.file, one.line) for one in report.recompiles),
        ((one.file, one.line) for one in report.skips),
        ((one.file, one.line) for one in report.limits),
        ((one.place.file, one.place.line) for one in chain.from_iterable(causes) if one.place is not None),
    )


def _lines_of(path: Path) -> list[str]:
    try:
        if path.suffix not in _SUFFIXES or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return []
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def _stretches(lines: Iterable[int], around: int, length: int) -> Iterator[tuple[int, int]]:
    """First and last lines of stretches that do not touch.

    >>> list(_stretches({3, 5, 40, 99}, 2, 50))
    [(1, 7), (38, 42)]
    """
    first = last = 0
    for line in sorted(one for one in lines if one <= length):
        if last and line - around <= last + 1:
            last = min(line + around, length)
            continue
        if last:
            yield first, last
        first, last = max(line - around, 1), min(line + around, length)
    if last:
        yield first, last
