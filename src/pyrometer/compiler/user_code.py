"""Which lines are the user's own: not torch's, and not a library's where the user's own code called it."""

from __future__ import annotations

import linecache
from collections.abc import Sequence

import msgspec

from pyrometer.compiler.stack import printed_stack
from pyrometer.place import Place
from pyrometer.source.ownership import Owner, owner_of


def own_stack(stack: Sequence[Place]) -> tuple[Place, ...]:
    """The frames of the user's, and those of libraries that the innermost of them called; the outermost first.

    Without any frame of the user's: those of libraries; without these either: torch's.
    """
    outside = [place for place in stack if _owner(place) != "torch"]
    own = [place for place in outside if _owner(place) == "user"]
    if not own:
        return tuple(outside or stack)
    last = max(number for number, place in enumerate(outside) if place is own[-1])
    return (*own, *outside[last + 1 :])


def own_place(stack: Sequence[Place]) -> Place | None:
    """The innermost line that is the user's own; of a library where there is none, of torch where there is nothing else."""
    nearest = {"user": 0, "torch": 2}
    return min(reversed(stack), key=lambda place: nearest.get(_owner(place), 1), default=None)


def line_outside_torch(stack: str) -> str:
    """The innermost line of a printed stack that is not torch's own, as `file:line`; empty if there is none.

    >>> line_outside_torch('  File "/home/me/net.py", line 7, in forward')
    '/home/me/net.py:7'
    """
    places = (place for place in reversed(printed_stack(stack)) if _owner(place) != "torch")
    return next((place.text for place in places), "")


def _owner(place: Place) -> Owner:
    return owner_of(place.path, place.function_name)


def with_source(place: Place, *, is_live: bool) -> Place:
    """The same with the text of its line, if that was not logged and the file is the one that runs here."""
    if place.source or not is_live:
        return place
    return msgspec.structs.replace(place, source=linecache.getline(place.path, place.line_number).strip())
