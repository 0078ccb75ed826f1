"""Which breaks follow from another one, and go away with it.

Dynamo tells in four ways. One text may hold a break and what handling it ran into. While it compiles up to a break, it may
meet another one, at the same line. And an unsupported context manager may be one that a call on the same line, itself a
break, has made. And the function of a library that a break did not let into the graph is compiled by itself when the line
calls it, and breaks there too. Everything else is a root cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pyrometer.compiler.breaks.occurrence import Occurrence
from pyrometer.compiler.compile_id import CompileId
from pyrometer.source.ownership import owner_of

CONTEXT_MANAGER = "Unsupported context manager"


def roots(occurrences: Iterable[Occurrence]) -> list[Occurrence | None]:
    """For each break the one that it follows from; `None` for root causes."""
    of_compilation: dict[CompileId, list[Occurrence]] = defaultdict(list)
    at_line: dict[tuple[object, ...], Occurrence] = {}
    calls: dict[tuple[object, ...], Occurrence] = {}
    found: list[Occurrence | None] = []
    for occurrence in occurrences:
        before = of_compilation[occurrence.compiled.compile_id]
        if occurrence.position > 0:
            found.append(_of_text(occurrence, before))
            continue
        called = (
            calls.get(_called(occurrence))
            if owner_of(occurrence.compiled.code.file) not in {"user", "torch"}
            else None
        )
        found.append(
            _while_compiling(occurrence, before)
            or _made_here(occurrence, at_line.get(_line(occurrence)))
            or called
        )
        if occurrence.is_direct and occurrence.place == occurrence.inside:
            calls[_called(occurrence)] = occurrence
        before.append(occurrence)
        at_line[_line(occurrence)] = occurrence
    return found


def _of_text(occurrence: Occurrence, before: Sequence[Occurrence]) -> Occurrence | None:
    root = before[-1] if before else None
    return root if root is not None and root.key != occurrence.key else None


def _while_compiling(one: Occurrence, before: Sequence[Occurrence]) -> Occurrence | None:
    for other in before:
        is_same_line = bool(one.way and other.way) and one.way[0].text == other.way[0].text
        if other.attempt < one.attempt and other.key != one.key and (one.cause.may_follow or is_same_line):
            return other
    return None


def _made_here(occurrence: Occurrence, earlier: Occurrence | None) -> Occurrence | None:
    is_manager = (
        occurrence.cause.reason == CONTEXT_MANAGER
        and occurrence.compiled.code.resumes_at == occurrence.place.line
    )
    return earlier if is_manager and earlier is not None and earlier.key != occurrence.key else None


def _called(occurrence: Occurrence) -> tuple[object, ...]:
    """The user's line, and what broke there."""
    return (
        occurrence.compiled.compile_id.epoch,
        occurrence.place.text,
        occurrence.cause.id or occurrence.cause.reason,
    )


def _line(occurrence: Occurrence) -> tuple[object, ...]:
    code = occurrence.compiled.code
    return occurrence.compiled.compile_id.epoch, code.file, code.function, occurrence.place.text
