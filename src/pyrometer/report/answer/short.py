"""The shape of a short answer: what every verb tells first, on one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Fix(NamedTuple):
    """Something to change, in order of its worth."""

    name: str
    gain: str = ""
    code: str = ""  # of the rule or item
    sentence: str = ""
    place: str = ""
    write: str = ""  # the code to write; what to do in words where there is none


class Part(NamedTuple):
    """A row of what a whole consists of."""

    name: str
    figure: str  # in the unit of the whole
    share: float | None = None  # of the whole, drawn as a bar
    note: str = ""


class Whole(NamedTuple):
    """What is divided, and its parts, which add up to it."""

    title: str
    unit: str = ""
    parts: Sequence[Part] = ()


class ShortAnswer(NamedTuple):
    """A document on one screen."""

    name: str  # what was looked at
    figure: str  # the answer, parts separated by " · "
    bound: str = ""  # what bounds it
    goals: Sequence[str] = ()  # whether what was asked for was reached, a line each
    alerts: Sequence[str] = ()  # what must not be overlooked, a sentence each
    fixes: Sequence[Fix] = ()
    fixes_title: str = "Fix first"
    nothing: str = ""  # what is said where there is nothing to change
    remarks: str = ""  # what is worth no fix, in a few words
    tries: str = ""  # the command that goes on from there
    whole: Whole | None = None
    trust: str = ""
    improve: str = ""  # the command that would make the trust larger
    kept: Mapping[str, str] = {}  # where all of it is, by what it is
    more: str = "--full"  # where the fixes are that find no room
    full: str = "--full prints every chapter"
    tone: str = ""
