"""Call stacks as torch prints and logs them, and functions that Dynamo made for the rest behind a break."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from pyrometer.place import Place

_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+)(?:, in (?P<function>.*))?$')
_END = re.compile(r"^(?:Traceback \(most recent call last\):|NoneType: None)")
_MARKS = re.compile(r"^[\s^~]*$")
_REST = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$")


def own_name(function: str) -> str:
    """The name of the user's function, also of the functions that Dynamo makes for what is behind a break.

    >>> own_name("torch_dynamo_resume_in_forward_at_17"), own_name("forward")
    ('forward', 'forward')
    """
    while match := _REST.match(function):
        function = match["function"]
    return function


def resumed_line(function: str) -> int | None:
    """The line of the break behind which a function of Dynamo's goes on; `None` for the user's own functions.

    >>> resumed_line("torch_dynamo_resume_in_forward_at_17"), resumed_line("forward")
    (17, None)
    """
    match = _REST.match(function)
    return None if match is None else int(match["line"])


def printed_stack(text: str) -> tuple[Place, ...]:
    r"""The frames of a printed stack, the outermost first, up to a traceback of torch's own that follows it.

    >>> printed_stack('  File "m.py", line 3, in f\n    return g(x)\n           ^^^^\n')
    (Place(file='m.py', line=3, function='f', source='return g(x)', module=None, op=None, phase=None, rank=None),)
    """
    places: list[Place] = []
    for line in text.split("\n"):
        if _END.match(line):
            break
        if match := _FRAME.match(line):
            places.append(
                Place(file=match["file"], line=int(match["line"]), function=match["function"] or None)
            )
        elif places and not places[-1].source and line.startswith("    ") and not _MARKS.match(line):
            places[-1] = msgspec.structs.replace(places[-1], source=line.strip())
    return without_rests(places)


def logged_stack(stack: object) -> tuple[Place, ...]:
    """The frames of a stack of the structured log, the outermost first; what is no frame is left out."""
    places = [
        Place(
            file=str(frame["filename"]),
            line=line_of(frame.get("line")),
            function=frame.get("name") or None,
            source=str(frame.get("loc") or "").strip() or None,
        )
        for frame in frames_of(stack)
        if frame.get("filename")
    ]
    return without_rests(places)


def frames_of(stack: object) -> tuple[dict[str, Any], ...]:
    """The frames of a stack of the structured log, as logged; what is no frame is left out."""
    return (
        tuple(frame for frame in stack if isinstance(frame, dict)) if isinstance(stack, (list, tuple)) else ()
    )


def line_of(number: object) -> int:
    """A line number as logged; 0 when it is none."""
    return number if isinstance(number, int) else 0


def without_rests(places: Iterable[Place]) -> tuple[Place, ...]:
    """The same with a function and the rests behind its breaks, each called by the one before, as one frame."""
    found: list[Place] = []
    for place in places:
        name = own_name(place.function_name)
        is_rest = name != place.function_name
        if is_rest and found and (found[-1].function_name, found[-1].file) == (name, place.file):
            found.pop()
        found.append(msgspec.structs.replace(place, function=name or None))
    return tuple(found)
