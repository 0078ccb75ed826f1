"""Every break as it was met: in this compilation, at this place, for this cause.

Two sources make the whole truth. torch writes a text for every break behind which something goes on, and for functions that
it gives up. A break that ends in an error (`fullgraph=True`) has no such text: the metrics of the failed compilation hold
the cause, and the error holds the user's stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyrometer.compiler.breaks.frames import Compiled, Functions
from pyrometer.compiler.breaks.text import BreakText, Cause, parse_break, parse_causes, user_stack
from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.user_code import own_place, own_stack, with_source
from pyrometer.place import Place
from pyrometer.source.ownership import owner_of

SOFT_FAILURES = frozenset({"Unsupported", "UserError"})
"""Exceptions that are breaks; any other is an error of the user's, of a backend or of the compiler."""


@dataclass(frozen=True)
class Occurrence:
    """One break, met once."""

    compiled: Compiled
    attempt: int
    position: int
    """In its text: 0 is the root cause."""
    cause: Cause
    place: Place
    """The innermost line that is the user's own."""
    inside: Place
    """The same, or the line of a library that it called."""
    inside_torch: bool
    """The innermost line of all is torch's."""
    way: tuple[Place, ...]
    """From the frame down through the functions that it inlined; empty if not told.

    torch leaves out modules of its own, and all but the last of methods of one name that call each other.
    """
    stack: tuple[Place, ...]
    gives_up: bool = False
    """The function runs eagerly, for this break or for one that it led to in the same compilation."""
    gives_up_rest: bool = False

    @property
    def is_direct(self) -> bool:
        """In the frame's own code, rather than in a function that it inlined."""
        return len(self.way) == 1

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for one break in all compilations: what, and which line."""
        return self.cause.id or self.cause.reason, self.place.text, self.inside.text


def occurrences_of(log: CompileLog, compiled: Mapping[CompileId, Compiled]) -> list[Occurrence]:
    """Every break, in the order in which they were met."""
    is_live = log.is_live
    functions = Functions(compiled.values())
    texts = _texts(log)
    occurrences: list[Occurrence] = []
    for compile_id, attempt, text in texts:
        made = compiled.get(compile_id, Compiled(compile_id))
        occurrences += _met(made, attempt, text, functions, is_live=is_live)
    compile_ids = {compile_id for compile_id, _, _ in texts}
    for compile_id, made in compiled.items():
        if made.failure in SOFT_FAILURES and compile_id not in compile_ids and made.limit is None:
            occurrences += _met(made, 0, _failure(made), functions, is_live=is_live)
    given_up = {occurrence.compiled.compile_id for occurrence in occurrences if occurrence.gives_up}
    return [
        replace(occurrence, gives_up=occurrence.compiled.compile_id in given_up) for occurrence in occurrences
    ]


def _texts(log: CompileLog) -> list[tuple[CompileId, int, BreakText]]:
    """The texts of the log, without those that say in other words what a further one says."""
    found = [
        (entry.compile_id, entry.attempt, parse_break(entry.payload))
        for entry in log.of("dynamo_graph_break_reason")
        if entry.compile_id is not None
    ]
    explained = {compile_id for compile_id, _, text in found if not text.is_backend}
    return [
        (compile_id, attempt, text)
        for compile_id, attempt, text in found
        if not (text.is_backend and compile_id in explained)
    ]


def _failure(compiled: Compiled) -> BreakText:
    """What a text would have said of a break that ended in an error."""
    stack = user_stack(compiled.error_text)
    if not stack and compiled.failure_place is not None:
        stack = (compiled.failure_place,)
    lines = compiled.failure_text.strip().split("\n")
    return BreakText(
        causes=parse_causes(compiled.failure_text) or (Cause(lines[0] or "unknown"),),
        stack=(*compiled.called_from, *stack),
        place=compiled.failure_place,
        gives_up=False,
        gives_up_rest=False,
    )


def _met(
    compiled: Compiled, attempt: int, text: BreakText, functions: Functions, *, is_live: bool
) -> Iterator[Occurrence]:
    way = _way(compiled, text, functions)
    whole = _whole_stack(compiled, text)
    stack = tuple(with_source(place, is_live=is_live) for place in own_stack(whole))
    place = own_place(stack) or Place(
        file=compiled.code.file, line=compiled.code.line, function=compiled.code.function
    )
    inside = stack[-1] if stack and owner_of(stack[-1].file) != "torch" else place
    for position, cause in enumerate(text.causes):
        yield Occurrence(
            compiled=compiled,
            attempt=attempt,
            position=position,
            cause=cause,
            place=place,
            inside=inside,
            inside_torch=bool(whole) and owner_of(whole[-1].file) == "torch",
            way=way,
            stack=stack,
            gives_up=text.gives_up,
            gives_up_rest=text.gives_up_rest,
        )


def _whole_stack(compiled: Compiled, text: BreakText) -> tuple[Place, ...]:
    """The stack, down to where torch says that the break is: while a graph is built, the frame itself is not on it."""
    last, stated = text.stack[-1] if text.stack else None, text.place
    if stated is None or (last is not None and last.text == stated.text):
        return text.stack
    in_frame = stated.file == compiled.code.file
    return (
        *text.stack,
        Place(file=stated.file, line=stated.line, function=compiled.code.function if in_frame else None),
    )


def _way(compiled: Compiled, text: BreakText, functions: Functions) -> tuple[Place, ...]:
    own = functions.of_frame(compiled)
    frames = [
        number
        for number, place in enumerate(text.stack)
        if compiled.code.file and functions.of(place.path, place.function_name, place.line_number) == own
    ]
    return text.stack[frames[-1] :] if frames else ()
