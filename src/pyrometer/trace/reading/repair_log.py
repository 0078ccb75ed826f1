"""What was wrong with a file, counted by kind and located: the making of `Repair` records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from pyrometer.errors import InputError
from pyrometer.trace.info import Repair

KEPT = "; analysed what is there; PYROMETER_STRICT=1 refuses it"
REFUSED = "; unset PYROMETER_STRICT to analyse what is there"

MEANING = MappingProxyType(
    {
        "bad_escape": "backslash that escapes nothing",
        "control_character": "control character inside a string",
        "bare_value": "bare NaN, Infinity, N/A or the like; read as null",
        "unescaped_quote": "quote inside a string that is not escaped",
        "bad_utf8": "bytes that are not UTF-8; replaced",
        "trailing_comma": "comma with nothing after it",
        "missing_comma": "no comma between two entries",
        "missing_value": "key without a value",
        "missing_bracket": "bracket that is never closed",
        "wrong_type": "value of a type that does not belong there; left out",
        "out_of_range": "whole number beyond 64 bits; left out",
        "garbage": "text between two events that is neither",
        "unreadable_event": "event that could not be mended",
        "not_an_event": "entry of traceEvents that is not an event",
        "missing_time": "event without a start",
        "clamped_time": "event that starts at 0, where the profiler puts what was before its window",
        "negative_duration": "negative duration; read as 0",
        "missing_duration": "complete event without a duration; read as 0",
        "unmatched_begin": "begin of an event that never ends",
        "unmatched_end": "end of an event that never began",
        "garbage_at_end": "text after the end of the trace",
        "missing_end": "file ends before its last bracket; its events are all there",
        "bad_header": "key beside traceEvents that could not be read",
    }
)
"""Code of a kind of damage: what it is, as said in its message."""


@dataclass
class _Entry:
    num_events: int = 0
    num_lost: int = 0
    first_byte: int | None = None
    message: str = ""  # for the kinds that have a sentence of their own


class RepairLog:
    """Counts the damage of one file.

    Args:
        name: the file, as messages call it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._entries: dict[str, _Entry] = {}

    def note(
        self, codes: str | Iterable[str], *, num: int = 0, lost: int = 0, byte: int | None = None
    ) -> None:
        """Count events that were mended, or lost, at a byte of the uncompressed file."""
        for code in (codes,) if isinstance(codes, str) else sorted(codes):
            entry = self._entries.setdefault(code, _Entry())
            entry.num_events += num
            entry.num_lost += lost
            if byte is not None and (entry.first_byte is None or byte < entry.first_byte):
                entry.first_byte = byte

    def tell(self, code: str, said: str, *, lost: int = 0, byte: int | None = None) -> None:
        """Count damage that has a sentence of its own."""
        self._entries[code] = _Entry(0, lost, byte, said)

    @property
    def num_lost(self) -> int:
        """Events that were lost, of all kinds."""
        return sum(entry.num_lost for entry in self._entries.values())

    def repairs(self) -> list[Repair]:
        """The records, in order of their place in the file."""
        repairs = [
            Repair(
                code=code,
                num_events=entry.num_events,
                num_lost=entry.num_lost,
                first_byte=entry.first_byte,
                message=f"{self.name}: {entry.message or _said(code, entry)}{KEPT}",
            )
            for code, entry in self._entries.items()
        ]
        return sorted(repairs, key=lambda repair: (repair.first_byte is None, repair.first_byte or 0))


def _said(code: str, entry: _Entry) -> str:
    counts = [
        f"{num} {'event' if num == 1 else 'events'} {what}"
        for num, what in ((entry.num_events, "kept"), (entry.num_lost, "lost"))
        if num
    ]
    where = [] if entry.first_byte is None else [f"first at byte {entry.first_byte}"]
    text = "; ".join([*counts, *where])
    return f"{MEANING[code]} ({text})" if text else MEANING[code]


def refuse(repairs: list[Repair]) -> None:
    """Raise for the first damage of a file, if there is any.

    Raises:
        InputError: what it is, and how to read the file all the same.
    """
    if repairs:
        raise InputError(repairs[0].message.removesuffix(KEPT) + REFUSED)


def renamed(repairs: list[Repair], before: str, after: str) -> list[Repair]:
    """The same records of a file that is called otherwise now."""
    if before == after:
        return repairs
    return [
        msgspec.structs.replace(repair, message=after + repair.message.removeprefix(before))
        for repair in repairs
    ]
