"""The user's lines that a document speaks of, with what stands around them."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from pyrometer.compiler.report import CompileReport
from pyrometer.report.attachments import FunctionLines, SourceText
from pyrometer.report.documents import Document, EvidenceDocument
from pyrometer.report.excerpts import MOST_OF_FUNCTION

MOST_LINES = 2_000
"""Lines that are kept over all files."""

MOST_BYTES = 4 * 2**20
"""A longer file is no source that someone wrote."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SUFFIXES = frozenset({".py", ".pyi", ".pyx"})
"""Nothing but programs is read: a document may come from anyone, and name anything."""


def places_to_show(document: Document) -> dict[str, set[int]]:
    """Lines of the user's files at breaks, recompilations, guards, findings and leaks, by the file's name in the document."""
    return _by_file(_named(document))


def _by_file(places: Iterable[tuple[str | None, int | None]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for file, line in places:
        if file and line and line > 0:
            found.setdefault(file, set()).add(line)
    return found


def compile_of(document: Document) -> CompileReport | None:
    """What torch.compile did, where the document tells it."""
    return document.evidence.compiled if isinstance(document, EvidenceDocument) else None


def read_sources(document: Document, *, around: int = 6) -> list[SourceText]:
    """Read the lines around every place that a document names; what is no readable Python file is left out.

    Of functions with findings the head is kept too, and where a finding names the head, what stands below it.

    Args:
        document: names the files; no other file is opened.
        around: lines before and behind each place.
    """
    texts: list[SourceText] = []
    left = MOST_LINES
    in_findings = _by_file(_of_findings(document))
    for file, lines in sorted(places_to_show(document).items()):
        text = _lines_of(Path(file))
        functions = functions_at(text, in_findings.get(file, ()))
        wanted = [(line - around, line + around) for line in lines if line <= len(text)]
        wanted += [_shown_of(function, lines) for function in functions]
        for first, last in _stretches(wanted, len(text)):
            taken = text[first - 1 : min(last, first - 1 + left)]
            if taken:
                inside = [function for function in functions if first <= function.head <= last]
                texts.append(SourceText(file=file, first_line=first, lines=taken, functions=inside))
            left -= len(taken)
    return texts


def functions_at(text: Sequence[str], lines: Collection[int]) -> list[FunctionLines]:
    """The innermost functions around some lines; none where the text is no Python of today.

    >>> functions_at(["@cache", "def f():", "    return 1"], [3])
    [FunctionLines(first=1, head=2, last=3)]
    """
    if not lines:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the user's program: it tells them itself when it runs
            tree = ast.parse("\n".join(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    functions = sorted(
        (_lines_of_function(node) for node in ast.walk(tree) if isinstance(node, FUNCTIONS)),
        key=lambda function_lines: function_lines.first,
    )
    innermost = {
        next((function for function in reversed(functions) if function.first <= line <= function.last), None)
        for line in lines
    }
    return [function for function in functions if function in innermost]


def _lines_of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionLines:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return FunctionLines(first=first, head=node.lineno, last=node.end_lineno or node.lineno)


def _shown_of(function: FunctionLines, lines: Iterable[int]) -> tuple[int, int]:
    """The head alone, or more of the function where a place is its head."""
    named = [line for line in lines if function.first <= line <= function.head]
    last = min(function.last, max(named) + MOST_OF_FUNCTION) if named else function.head
    return function.head, last


def _named(document: Document) -> Iterator[tuple[str | None, int | None]]:
    report = compile_of(document)
    if report is not None:
        yield from _of_compile(report)
    yield from _of_findings(document)
    profile = document.evidence.memory if isinstance(document, EvidenceDocument) else None
    leak = profile.leak if profile is not None else None
    if leak is not None:
        yield from ((site.file, site.line) for site in leak.sites)


def _of_findings(document: Document) -> Iterator[tuple[str | None, int | None]]:
    if isinstance(document, EvidenceDocument):
        yield from ((finding.where.file, finding.where.line) for finding in document.diagnosis.findings)


def _of_compile(report: CompileReport) -> Iterable[tuple[str | None, int | None]]:
    causes = [
        *(recompile.causes for recompile in report.recompiles),
        *(limit.causes for limit in report.limits),
    ]
    return chain(
        ((graph_break.file, graph_break.line) for graph_break in report.breaks),
        ((recompile.file, recompile.line) for recompile in report.recompiles),
        ((skip.file, skip.line) for skip in report.skips),
        ((limit.file, limit.line) for limit in report.limits),
        (
            (cause.place.file, cause.place.line)
            for cause in chain.from_iterable(causes)
            if cause.place is not None
        ),
    )


def _lines_of(path: Path) -> list[str]:
    try:
        if path.suffix not in _SUFFIXES or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return []
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def _stretches(wanted: Iterable[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """First and last lines of stretches that do not touch, within a text of so many lines.

    >>> list(_stretches([(3, 7), (1, 5), (38, 99)], 50))
    [(1, 7), (38, 50)]
    """
    first = last = 0
    for begin, end in sorted(wanted):
        if last and begin <= last + 1:
            last = max(last, min(end, length))
            continue
        if last:
            yield first, last
        first, last = max(begin, 1), min(end, length)
    if last:
        yield first, last
