"""What the follower in the script hands to the process outside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pyrometer.files import replacing
from pyrometer.memory.profile import MemoryProfile
from pyrometer.record import Record, doc, to_json

STEPS = 2
"""Recorded in detail: the first step, in which optimizers make their state, and one with it."""


class FollowSettings(Record, frozen=True, kw_only=True):
    """What to follow, and where to write what was found."""

    path: Annotated[str, doc("of the findings; rewritten whenever there is more to tell")]
    name: Annotated[str, doc("of the script")]
    leak_steps: Annotated[
        int | None, doc("steps to watch for memory that stays; null: to the end of the script")
    ] = None


class ScriptFindings(Record, frozen=True, kw_only=True):
    """What was found until now."""

    profile: Annotated[MemoryProfile | None, doc("null while nothing was recorded")] = None
    notes: Annotated[list[str], doc("what could not be told, and why")] = []


def write_findings(findings: ScriptFindings, path: str) -> None:
    """Replace the file in one go, so that a script may end at any time.

    Raises:
        OSError: it cannot be written.
    """
    with replacing(Path(path)) as beside:
        beside.write_bytes(to_json(findings))
