"""Samples of the host as they come from inside of a process, before they are joined with the source."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pyrometer.record import Record, doc


class Code(NamedTuple):
    """A function, module or comprehension, as Python compiled it."""

    file: str
    name: str
    first_line: int
    flags: int


class Spot(NamedTuple):
    """An instruction; columns in bytes, from 0; what Python does not know is None."""

    code: int
    operation: str
    line: int | None
    end_line: int | None
    column: int | None
    end_column: int | None


class Stack(NamedTuple):
    """A stack, innermost first, and how long it was seen."""

    ns: int
    garbage: bool
    spots: list[int]


class Beside(NamedTuple):
    """Where another thread was meanwhile."""

    thread: int
    spots: list[int]


class Wait(NamedTuple):
    """How often the sampled thread was seen to wait at a place while the others were at theirs."""

    times: int
    spots: list[int]
    others: list[Beside]


class Stretch(NamedTuple):
    """Time of an instruction that a look at a point would have seen there.

    The point lies in the user's code, or above an instruction of the user's; -1 is none, and as a point the end of the step.
    """

    point: int
    below: int
    spot: int
    ns: int
    times: int


class Edge(NamedTuple):
    """How often a line came right after another in the same frame; 0 is the beginning."""

    code: int
    before: int
    line: int
    times: int


class HostSamples(Record, frozen=True, kw_only=True):
    """Where sampled steps were, and what watched ones were made of."""

    interval_ns: int
    by_timer: Annotated[bool, doc("false where a thread looked, as the timer was in use")] = True
    look_ns: int = 0
    looks: int = 0
    sampled_ns: list[int]
    bare_ns: list[int] = []
    overheads: Annotated[
        list[float], doc("by how much sampling lengthened the steps of a block, in time of the processor")
    ] = []
    codes: list[Code] = []
    places: list[Spot] = []
    stacks: list[Stack] = []
    waits: list[Wait] = []
    stretches: list[Stretch] = []
    edges: Annotated[
        list[Edge] | None, doc("of the watched steps; null where not all of them was watched")
    ] = None
    calls: Annotated[list[tuple[int, int]], doc("entries of each code in the watched steps")] = []
    watched: Annotated[int, doc("steps that were watched")] = 0
    types: Annotated[list[tuple[int, str, str]], doc("code, name, and the type of what it was bound to")] = []
    notes: list[str] = []
