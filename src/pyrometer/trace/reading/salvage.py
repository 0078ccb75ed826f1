"""Reading a stretch of events one by one, where decoding it in one go failed.

Every complete event is recovered. One that does not decode is mended; one that cannot be mended is counted as lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pyrometer.trace.reading.decoding import (
    DECODE_ERRORS,
    AnyEvent,
    Loose,
    Shape,
    decode_loosely,
    decoder,
    is_short,
    trailing_from,
)
from pyrometer.trace.reading.effort import DECODED, Effort
from pyrometer.trace.reading.mending import Mended, attempts, event_keys
from pyrometer.trace.reading.repair_log import RepairLog

_START = re.compile(
    rb"(?:\A|([,\[}\]]))\s*(?=\{\s*(?:\}|"
    rb'"(?:name|cat|ph|ts|tts|pid|tid|dur|tdur|id|id2|args|s|bp|sf|cname|scope|bind_id|stack|local_id)"\s*:))'
)
"""Where an event may begin. Lists of objects inside arguments look the same; decoding tells."""

_END_OF_LIST = re.compile(rb"\}\s*(\])\s*(?:[,}]|\Z)")

LOOK_AHEAD = 4
"""Starts inside a damaged event that are tried as part of it."""

INCOMPLETE, DAMAGED = -1, -2
_WINDOW = 1 << 14

LONGEST_EVENT = 1 << 24

LONGEST_GAP = 1 << 20
"""Text in which no event begins is passed over once it is this long."""


def find_start(text: bytes) -> int | None:
    """Where an event begins, or the list ends, behind the first byte of a text."""
    match = _START.search(text, 1)
    if match is not None:
        return match.end()
    match = _END_OF_LIST.search(text, 1)
    return None if match is None else match.start(1)


def is_gap(text: bytes) -> bool:
    """Whether text that nothing could be taken of need not wait for more of it."""
    return len(text) > LONGEST_EVENT or (
        len(text) > LONGEST_GAP and _START.match(text) is None and find_start(text) is None
    )


class Taken(NamedTuple):
    """What was read of a text."""

    events: Sequence[AnyEvent]
    used: int  # bytes; the rest belongs to what follows
    ended: bool  # the list of events was closed at `used`
    cut: bool = False  # the text ends inside an event


class Damage(NamedTuple):
    """What the stretches of one file have in common."""

    repair_log: RepairLog
    effort: Effort


class _Piece(NamedTuple):
    event: AnyEvent | None
    end: int


class Salvage:
    """One stretch of events.

    Args:
        text: begins with an event, or with what separates two.
        offset: of its first byte in the file.
        final: no text follows.
        shape: of events.
        damage: where it is counted, and how much work it may still cost.
    """

    def __init__(self, text: bytes, *, offset: int, final: bool, shape: Shape, damage: Damage) -> None:
        self.text = text
        self.offset = offset
        self.final = final
        self.shape = shape
        self.repair_log, self.effort = damage
        self._in_vain = 0.0
        matches = list(_START.finditer(text))
        self.starts = [match.end() for match in matches]
        self.ends = [match.start() + (match[1] not in (None, b",")) for match in matches]
        self.ends.append(len(text))

    def run(self) -> Taken:
        """Read it."""
        events: list[AnyEvent] = []
        used = i = 0
        while i < len(self.starts):
            at = self.starts[i]
            closed = self._between(used, at, first=not events and not used)
            if closed:
                return Taken(events, closed, ended=True)
            piece = self._event(i)
            if piece is None:
                return Taken(events, at, ended=False, cut=self.final)
            if piece.event is not None:
                events.append(piece.event)
            used = piece.end
            i += 1
            while i < len(self.starts) and self.starts[i] < used:  # objects inside the event's arguments
                i += 1
        return self._rest(events, used)

    def _rest(self, events: list[AnyEvent], used: int) -> Taken:
        rest = self.text[used:].strip()
        if rest.lstrip(b", \t\r\n").startswith(b"]"):
            if rest.startswith(b","):
                self.repair_log.note("trailing_comma", num=1, byte=self.offset + used)
            return Taken(events, self.text.index(b"]", used) + 1, ended=True)
        if not self.final or rest in (b"", b","):
            return Taken(events, used, ended=False)
        return Taken(events, used, ended=False, cut=True)

    def _between(self, used: int, at: int, *, first: bool) -> int:
        """Judge what separates two events; gives the place after the bracket that ends the list, or 0."""
        between = self.text[used:at].strip()
        if between == b"," or (first and not between):
            return 0
        byte = self.offset + used
        if between.lstrip(b", \t\r\n").startswith(b"]"):
            if between.startswith(b","):
                self.repair_log.note("trailing_comma", num=1, byte=byte)
            return self.text.index(b"]", used) + 1
        if not between:
            self.repair_log.note("missing_comma", num=1, byte=byte)
        elif not between.strip(b", \t\r\n"):
            self.repair_log.note("trailing_comma", num=1, byte=byte)
        else:
            entry = re.fullmatch(rb",?\s*(null|true|false|-?[\d.]+|\"[^\"]*\")\s*,?", between)
            self.repair_log.note("not_an_event" if entry else "garbage", lost=1, byte=byte)
        return 0

    def _event(self, i: int) -> _Piece | None:
        """Read the event at a start; None where the text ends inside it."""
        at = self.starts[i]
        self._in_vain = 0.0
        try:
            return _Piece(decoder(self.shape).decode(self.text[at : self.ends[i + 1]]), self.ends[i + 1])
        except DECODE_ERRORS:
            end = self._extent(at)
        if end > 0:
            return (
                self._read(at, end) or self._mend(self.text[at:end], at, insert=False) or self._lost(i, end)
            )
        if end == INCOMPLETE and (self.final or len(self.text) - at < LONGEST_EVENT):
            return None
        if self._is_short_of_text(i):
            return None
        mended = self._mend_somewhere(i)
        if mended is not None or i + 1 < len(self.starts):
            return mended or self._lost(i, self.ends[i + 1])
        closing = _END_OF_LIST.search(self.text, at)
        return self._lost(i, closing.start(1)) if closing else None

    def _lost(self, i: int, end: int) -> _Piece:
        self.effort.spend(self._in_vain)
        self.repair_log.note("unreadable_event", lost=1, byte=self.offset + self.starts[i])
        return _Piece(None, end)

    def _extent(self, at: int) -> int:
        """Where the object that begins here ends, however many others it holds."""
        window = _WINDOW
        while True:
            piece = self.text[at : at + window]
            try:
                decoder(msgspec.Raw).decode(piece)
            except DECODE_ERRORS as error:
                end = trailing_from(error)
                if end is not None:
                    return at + end
                self._in_vain += len(piece) * DECODED
                if not is_short(error):
                    return DAMAGED
            else:
                return at + len(piece)
            if at + window >= len(self.text):
                return INCOMPLETE
            if self.effort.is_spent:
                return DAMAGED
            window *= 4

    def _is_short_of_text(self, i: int) -> bool:
        """Whether damage should wait for more text: what looks like its end may be what it holds."""
        near = len(self.starts) - i <= LOOK_AHEAD
        return not self.final and near and len(self.text) - self.starts[i] < LONGEST_EVENT

    def _read(self, at: int, end: int) -> _Piece | None:
        event = decode_loosely(self.text[at:end], self.shape)
        if event is None:
            return None
        if event.misfits:
            self.repair_log.note("wrong_type", num=1, byte=self.offset + at)
        return _Piece(event.value, end)

    def _mend_somewhere(self, i: int) -> _Piece | None:
        """Mend the event at a start, which may reach over what look like further starts."""
        at = self.starts[i]
        for insert in (False, True):
            for end in self.ends[i + 1 : i + 2 + LOOK_AHEAD]:
                mended = self._mend(self.text[at:end], at, insert=insert)
                if mended is not None:
                    return mended
        return None

    def _mend(self, piece: bytes, at: int, *, insert: bool) -> _Piece | None:
        """Take the first way to mend an event that swallows none of its keys, or the one that swallows fewest."""
        text = piece.rstrip(b", \t\r\n")
        if not self.effort.allows(len(text), self._in_vain):
            return None
        wanted = event_keys(text)
        best: tuple[Mended, Loose] | None = None
        for mended in attempts(text, insert=insert):
            event = self._sensible(mended, text, last=at + len(piece) == len(self.text))
            if event is not None and (best is None or len(mended.keys) > len(best[0].keys)):
                best = mended, event
                if mended.keys >= wanted:
                    break
        if best is None:
            self._in_vain += len(text)
            return None
        mended, event = best
        codes = mended.codes | ({"wrong_type"} if event.misfits else set())
        self.repair_log.note(codes, num=1, byte=self.offset + at)
        return _Piece(event.value, at + mended.end)

    def _sensible(self, mended: Mended, text: bytes, *, last: bool) -> Loose | None:
        rest = text[mended.end :].strip()
        if rest and not rest.startswith(b"]"):
            return None
        if last and not rest and "missing_bracket" in mended.codes:
            return None  # the file ends inside this event: what it would have said is not known
        return decode_loosely(mended.text, self.shape)
