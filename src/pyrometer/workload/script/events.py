"""Reading the event log of a script, whole or cut off anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from pyrometer.errors import InputError
from pyrometer.workload.script.startup._pyrometer_inside import kinds

Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Events:
    """What was logged, as columns of equal length, in the order of time.

    Attributes:
        start_ns: start of the script on the clock of the events.
        time_ns: when, `[n]`.
        kind: what, one of `kinds`, `[n]`.
        flags: more about it, `[n]`.
        value: which object, or how many, `[n]`.
    """

    start_ns: int
    time_ns: Integers
    kind: Integers
    flags: Integers
    value: Integers

    def of(self, *wanted: int) -> Events:
        """Only the events of these kinds."""
        return self.where(np.isin(self.kind, wanted))

    def where(self, chosen: npt.NDArray[np.bool_]) -> Events:
        """Only the events chosen by a mask, `[n]`."""
        return Events(
            self.start_ns, self.time_ns[chosen], self.kind[chosen], self.flags[chosen], self.value[chosen]
        )

    def last_value(self, kind: int) -> int | None:
        """Value of the last event of a kind, or `None`."""
        found = self.value[self.kind == kind]
        return int(found[-1]) if len(found) else None


def read_events(path: Path) -> Events:
    """Read a log up to its last whole event.

    Raises:
        InputError: there is no log, or it is of another kind or a later version.
    """
    try:
        with path.open("rb") as file:
            return parse_events(_read_used(file))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def parse_events(raw: bytes) -> Events:
    """Decode the bytes of a log; whatever follows the last whole event is left out.

    Raises:
        InputError: the header is missing, of another kind, or of a later version.
    """
    words = np.frombuffer(raw[: len(raw) // 8 * 8], dtype=np.int64)
    if len(words) < kinds.HEADER_WORDS or words[0] != kinds.MAGIC:
        raise InputError(f"event log: {len(raw)} bytes without a header; the observation did not begin")
    if words[1] != kinds.VERSION:
        raise InputError(f"event log: version {words[1]}; this pyrometer reads version {kinds.VERSION}")
    body = words[kinds.HEADER_WORDS :]
    rows = body[: len(body) // 2 * 2].reshape(-1, 2)
    unused = np.flatnonzero(rows[:, 1] == 0)
    rows = rows[: unused[0]] if len(unused) else rows
    word = rows[:, 1]
    return Events(
        start_ns=int(words[2]),
        time_ns=rows[:, 0],
        kind=word & kinds.KIND_MASK,
        flags=(word >> kinds.KIND_BITS) & kinds.KIND_MASK,
        value=word >> kinds.VALUE_SHIFT,
    )


def _read_used(file: BinaryIO) -> bytes:
    """The bytes up to where the zeros begin: the file is mapped far beyond what is written."""
    chunks = []
    while chunk := file.read(1 << 20):
        chunks.append(chunk)
        if not any(chunk[-16:]):
            break
    return b"".join(chunks)
