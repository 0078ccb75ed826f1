"""What a search has decided, line by line in a file, so that one that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pyrometer.files import replacing
from pyrometer.quantity import counted
from pyrometer.record import Record, to_json
from pyrometer.tuning.levers.choice import LeverChoice, key_of
from pyrometer.tuning.outcome import LeverOutcome


class _Heading(Record, frozen=True, kw_only=True):
    """The first line: what the search is of."""

    identity: str


class Journal:
    """Outcomes by what was tried against what.

    A line that was cut short by the end of its process is left out, as is a whole file of another program, goal or machine.

    Attributes:
        note: what became of that; `None` where nothing was to be kept.
    """

    def __init__(self, path: Path, identity: str, *, resume: bool) -> None:
        self._path = path
        self._decided: dict[str, LeverOutcome] = {}
        self.note = self._read(identity) if resume else None
        # Whole lines alone: what comes next must not be appended to half a line.
        with replacing(path) as beside:
            kept = [to_json(outcome) for outcome in self._decided.values()]
            beside.write_bytes(b"\n".join([to_json(_Heading(identity=identity)), *kept, b""]))

    def _read(self, identity: str) -> str:
        """Take over what an earlier search decided, and say what that is."""
        begun_anew = "--resume: begun anew, since "
        if not self._path.exists():
            return f"{begun_anew}no earlier search is at {self._path}"
        lines = self._path.read_bytes().split(b"\n")
        try:
            if msgspec.json.decode(lines[0], type=_Heading).identity != identity:
                return f"{begun_anew}the search before had another program, other settings or another machine"
        except msgspec.MsgspecError:
            return f"{begun_anew}{self._path} is not whole"
        for line in lines[1:]:
            try:
                outcome = msgspec.json.decode(line, type=LeverOutcome)
            except msgspec.MsgspecError:
                continue  # cut short; it is tried again
            self._decided[_key(outcome.against, outcome.configuration)] = outcome
        return f"--resume: {counted(len(self._decided), 'trial')} of the search before taken over"

    def recall(
        self, against: Sequence[LeverChoice], configuration: Sequence[LeverChoice]
    ) -> LeverOutcome | None:
        """What was decided of a configuration against another; `None` where nothing was."""
        return self._decided.get(_key(against, configuration))

    def add(self, outcome: LeverOutcome) -> None:
        """Write an outcome down, so that it outlives this process."""
        try:
            with self._path.open("ab") as file:
                file.write(to_json(outcome) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.note = f"{self._path}: not all trials could be written down for --resume: {error.strerror}"
        self._decided[_key(outcome.against, outcome.configuration)] = outcome


def _key(against: Sequence[LeverChoice], configuration: Sequence[LeverChoice]) -> str:
    return f"{key_of(against)}-{key_of(configuration)}"


def identity_of(*parts: str) -> str:
    """Twelve hexadecimal digits of some texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
