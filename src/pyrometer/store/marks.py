"""What people say of runs: a note with tags on a run, and the run that is the baseline of a target.

They are one small document, beside the runs and written whole: runs themselves never change.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from pyrometer.errors import InputError
from pyrometer.record import Record, doc

LONGEST_NOTE = 500
"""Characters of a note."""

_TAG = re.compile(r"#([\w.-]{1,40})")


class Marks(Record, frozen=True, kw_only=True):
    """All of a store."""

    notes: Annotated[dict[str, str], doc("note of a run, by its id; `#words` in it are its tags")] = {}
    baselines: Annotated[dict[str, str], doc("id of the run that is the baseline of a target")] = {}

    accepted: Annotated[
        dict[str, str], doc("why a change of the guard's history is accepted, by its last commit")
    ] = {}

    def tags(self, run_id: str) -> list[str]:
        """The tags of a run.

        >>> Marks(notes={"r1": "after the move to #bf16, #fp8 next"}).tags("r1")
        ['bf16', 'fp8']
        """
        return [tag.rstrip(".-") for tag in _TAG.findall(self.notes.get(run_id, ""))]


def with_note(marks: Marks, run_id: str, note: str) -> Marks:
    """The same with another note of a run; an empty one is taken away.

    Raises:
        InputError: the note is too long.
    """
    note = " ".join(note.split())
    if len(note) > LONGEST_NOTE:
        raise InputError(f"the note has {len(note)} characters; {LONGEST_NOTE} fit")
    return msgspec.structs.replace(marks, notes=_with(marks.notes, run_id, note or None))


def with_baseline(marks: Marks, target: str, run_id: str | None) -> Marks:
    """The same with a run as the baseline of its target; `None` takes the pin away."""
    return msgspec.structs.replace(marks, baselines=_with(marks.baselines, target, run_id))


def with_accepted(marks: Marks, commit: str, reason: str | None) -> Marks:
    """The same with what changed up to a commit accepted; `None` takes that back.

    Raises:
        InputError: the reason is too long.
    """
    reason = reason and " ".join(reason.split())
    if reason is not None and not 0 < len(reason) <= LONGEST_NOTE:
        raise InputError(f"the reason has {len(reason)} characters; 1 to {LONGEST_NOTE} are legal")
    return msgspec.structs.replace(marks, accepted=_with(marks.accepted, commit, reason))


def _with(known: dict[str, str], key: str, value: str | None) -> dict[str, str]:
    rest = {name: said for name, said in known.items() if name != key}
    return rest if value is None else rest | {key: value}
