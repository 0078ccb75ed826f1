"""Where ranks stood that did not move."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class Waiting(Record, frozen=True, kw_only=True):
    """Where a rank stood when nothing had moved for long."""

    rank: int
    place: Annotated[str | None, doc("file:line of the user's own code; null where it did not answer")] = None
    function: str = ""
    operation: Annotated[str | None, doc("collective that it waits in; null where it is in none")] = None
    group: str = ""
    sequence: Annotated[int | None, doc("number of the collective in its group")] = None
    elements: Annotated[list[int], doc("shape of its first tensor")] = []


class Stall(Record, frozen=True, kw_only=True):
    """A time in which a rank logged nothing for long."""

    after_s: Annotated[Seconds, doc("since the launch")]
    silent_s: Annotated[Seconds, doc("for which the rank that was noticed had not moved")]
    waiting: Annotated[list[Waiting], doc("ranks in a collective that others have not come to")] = []
    missing: Annotated[list[Waiting], doc("the ranks that they wait for")] = []
    resumed: Annotated[bool, doc("whether it went on later")] = False
