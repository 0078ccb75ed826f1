"""What people say of runs: a note with tags on a run, and the run that is the baseline of a target.

It lies beside the database, in one small file that is written whole: runs themselves never change.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Annotated

import msgspec

from pyrometer.errors import InputError, StoreError
from pyrometer.files import replacing
from pyrometer.record import Record, doc, from_json, to_json

NAME = "marks.json"
LONGEST_NOTE = 500
"""Characters of a note."""

_TAG = re.compile(r"#([\w.-]{1,40})")
_WRITING = threading.Lock()


class Marks(Record, frozen=True, kw_only=True):
    """All of a store."""

    notes: Annotated[dict[str, str], doc("note of a run, by its id; `#words` in it are its tags")] = {}
    baselines: Annotated[dict[str, str], doc("id of the run that is the baseline of a target")] = {}

    def tags(self, run_id: str) -> list[str]:
        """The tags of a run.

        >>> Marks(notes={"r1": "after the move to #bf16, #fp8 next"}).tags("r1")
        ['bf16', 'fp8']
        """
        return [tag.rstrip(".-") for tag in _TAG.findall(self.notes.get(run_id, ""))]


def read_marks(folder: Path) -> Marks:
    """The marks of a store; none where nothing was marked.

    Raises:
        StoreError: the file cannot be read.
    """
    path = folder / NAME
    try:
        return from_json(Marks, path.read_bytes())
    except FileNotFoundError:
        return Marks()
    except (OSError, InputError, msgspec.DecodeError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); move it away to go on without notes") from error


def set_note(folder: Path, run_id: str, note: str) -> Marks:
    """Write the note of a run; an empty one is taken away.

    Raises:
        InputError: the note is too long.
        StoreError: the file cannot be read or written.
    """
    note = " ".join(note.split())
    if len(note) > LONGEST_NOTE:
        raise InputError(f"the note has {len(note)} characters; {LONGEST_NOTE} fit")
    with _WRITING:
        marks = read_marks(folder)
        notes = {key: said for key, said in marks.notes.items() if key != run_id} | (
            {run_id: note} if note else {}
        )
        return _write(folder, msgspec.structs.replace(marks, notes=notes))


def pin_baseline(folder: Path, target: str, run_id: str | None) -> Marks:
    """Make a run the baseline of its target; `None` takes the pin away.

    Raises:
        StoreError: the file cannot be read or written.
    """
    with _WRITING:
        marks = read_marks(folder)
        kept = {key: pinned for key, pinned in marks.baselines.items() if key != target}
        return _write(
            folder, msgspec.structs.replace(marks, baselines=kept | ({target: run_id} if run_id else {}))
        )


def _write(folder: Path, marks: Marks) -> Marks:
    try:
        with replacing(folder / NAME) as beside:
            beside.write_bytes(to_json(marks))
    except OSError as error:
        raise StoreError(f"{folder / NAME}: cannot be written ({error.strerror})") from error
    return marks
