"""From blocks of text to lists of events: split anywhere between two events, whatever the style of the JSON.

A split is right if, and only if, what lies before it decodes: inside a string or inside an event's arguments a bracket
or a quote would be left open. So candidates are tried from the last one backwards, with no scanner in Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pyrometer.trace.reading.decoding import (
    DECODE_ERRORS,
    AnyEvent,
    Shape,
    decode_list,
    decoder,
    is_short,
    trailing_from,
)
from pyrometer.trace.reading.effort import Effort
from pyrometer.trace.reading.repair_log import RepairLog
from pyrometer.trace.reading.salvage import Damage, Salvage, Taken, find_start, is_gap
from pyrometer.trace.reading.scanned import ScannedEvents
from pyrometer.trace.reading.scanning import TS, scan
from pyrometer.trace.reading.shapes import Event, ExactEvent
from pyrometer.trace.reading.times import IntArray, nanoseconds, too_coarse

CHUNK_BYTES = 1 << 23
"""Text decoded at once: enough to make the cost of a chunk small, little enough for memory."""

LONGEST_HEAD = 1 << 28
"""A file that holds more before its first event is refused: it is hardly a trace."""

_BETWEEN = re.compile(rb"\}(\s*,\s*)(?=\{)")
_WINDOW = 1 << 16
_CANDIDATES = (1, 2, 3, 4, 8, 16, 32, 64)  # objects inside one event's arguments may look like events
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*(\[|null)')
_DEEPEST = 3
_LONGEST_START = 256


class Batch(NamedTuple):
    """Events of one chunk, and where its text lies."""

    events: Sequence[AnyEvent]
    start: IntArray  # of each, ns; NO_TIME where there is none
    text: bytes
    offset: int


class Document:
    """A trace file's text, read once: first `batches`, then `head` and `tail` hold the keys around the events.

    Args:
        blocks: the text.
        repair_log: where damage is counted.
        chunk_bytes: text to decode at once.
    """

    def __init__(
        self, blocks: Iterable[bytes], repair_log: RepairLog, *, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        self.head = b""
        self.tail = b""
        self.has_events = False
        self.closed = False
        self.cut_at: int | None = None  # byte of the event inside which the text ends
        self.num_events = 0
        self.num_bytes = 0
        self._blocks = iter(blocks)
        self._damage = Damage(repair_log, Effort())
        self._chunk_bytes = chunk_bytes
        self._shape: Shape = Event
        self._start: IntArray = np.empty(0, dtype=np.int64)

    def batches(self) -> Iterator[Batch]:
        """The events, chunk by chunk."""
        text = self._read_head()
        offset = self.num_bytes - len(text)
        earned = offset
        wanted = self._chunk_bytes
        while self.has_events and not self.closed:
            text, final = self._more(text, wanted)
            self.num_bytes = offset + len(text)
            self._damage.effort.earn(offset + len(text) - earned)
            earned = offset + len(text)
            taken = self._take(text, offset, final=final)
            self.num_events += len(taken.events)
            if taken.events:
                yield Batch(taken.events, self._start, text, offset)
            self.closed = taken.ended
            wanted = self._chunk_bytes if taken.used else 2 * len(text)  # an event longer than a chunk
            text, offset = text[taken.used :], offset + taken.used
            if not (taken.used or final) and is_gap(text):
                text = self._skip_gap(text, offset)
                offset, wanted = self.num_bytes - len(text), self._chunk_bytes
            if final:
                self.cut_at = offset if taken.cut else None
                break
        if self.closed:
            self.tail = text + self._read_rest()

    def _more(self, text: bytes, wanted: int) -> tuple[bytes, bool]:
        """Read on, by one block at least; also gives whether the file is at its end."""
        blocks, size = [text], len(text)
        while True:
            block = next(self._blocks, b"")
            blocks.append(block)
            size += len(block)
            if not block or size >= wanted:
                return b"".join(blocks), not block

    def _skip_gap(self, text: bytes, offset: int) -> bytes:
        """Read on to where an event may begin, keeping nothing of what lies before."""
        self._damage.repair_log.note("garbage", lost=1, byte=offset)
        while True:
            start = find_start(text)
            if start is not None:
                return text[start:]
            block = next(self._blocks, b"")
            if not block:
                return b""
            self.num_bytes += len(block)
            text = text[-_LONGEST_START:] + block

    def _read_rest(self) -> bytes:
        """What follows the events, as far as it may hold keys of a trace."""
        rest = bytearray()
        for block in self._blocks:
            self.num_bytes += len(block)
            if len(rest) <= LONGEST_HEAD:
                rest += block
        return bytes(rest)

    def _read_head(self) -> bytes:
        """Take the text up to the events, which may be a bare list."""
        text = bytearray()
        searched = 0
        for block in self._blocks:
            text += block
            self.num_bytes += len(block)
            bare = re.match(rb"\s*\[", text)
            if bare:
                self.has_events = True
                return bytes(text[bare.end() :])
            for match in _EVENTS_KEY.finditer(text, searched):
                if _is_whole(text[: match.start()]):
                    return self._after_head(text, match)
            if len(text) > LONGEST_HEAD:
                break
            searched = max(0, len(text) - 64)
        in_damage = _EVENTS_KEY.search(text)
        if in_damage:
            return self._after_head(text, in_damage)
        self.head = bytes(text)
        return b""

    def _after_head(self, text: bytearray, match: re.Match[bytes]) -> bytes:
        self.head = bytes(text[: match.start()])
        self.has_events = True
        rest = bytes(text[match.end() :])
        return rest if match[1] == b"[" else b"]" + rest

    def _take(self, text: bytes, offset: int, *, final: bool) -> Taken:
        start = re.match(rb"\s*,?\s*", text)
        skipped = start.end() if start else 0
        scanned = scan(text, skipped, final=final)
        if scanned is not None:
            self._start = scanned.fields[TS]
            if scanned.coarse:
                self._shape = ExactEvent
            return Taken(ScannedEvents(scanned, np.arange(len(scanned))), scanned.used, ended=scanned.ended)
        taken = self._decode(text, skipped, final=final)
        if taken is None:
            taken = Salvage(text, offset=offset, final=final, shape=self._shape, damage=self._damage).run()
        times = [event.ts for event in taken.events]
        if self._shape is Event and too_coarse(times):
            self._shape = ExactEvent
            return self._take(text, offset, final=final)
        self._start = nanoseconds(times)
        return taken

    def _decode(self, text: bytes, skipped: int, *, final: bool) -> Taken | None:
        """Decode as much as a split allows; None where the text is damaged."""
        if text[skipped : skipped + 1] == b"]":
            return Taken([], skipped + 1, ended=True)
        if final:
            return self._decode_last(text, skipped)
        for cut, resume in _splits(text):
            if cut <= skipped:
                break
            try:
                return Taken(
                    decode_list(b"".join((b"[", memoryview(text)[skipped:cut], b"]")), self._shape),
                    resume,
                    ended=False,
                )
            except DECODE_ERRORS as error:
                if trailing_from(error) is not None:
                    return self._decode_last(text, skipped)
                if not is_short(error):
                    return None
        return None

    def _decode_last(self, text: bytes, skipped: int) -> Taken | None:
        whole = b"[" + text[skipped:]
        try:
            return Taken(decode_list(whole, self._shape), len(text), ended=True)
        except DECODE_ERRORS as error:
            end = trailing_from(error)
        if end is None:
            return None
        try:
            events = decode_list(whole[:end], self._shape)
        except DECODE_ERRORS:
            return None
        return Taken(events, end - 1 + skipped, ended=True)


def _splits(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the text may be split, from its end: after an event, and where the next one begins."""
    window = _WINDOW
    while True:
        matches = list(_BETWEEN.finditer(text, max(0, len(text) - window)))
        if matches or window >= len(text):
            break
        window *= 8
    for back in _CANDIDATES:
        if back <= len(matches):
            yield matches[-back].start() + 1, matches[-back].end()


def _is_whole(head: bytes | bytearray) -> bool:
    """Whether the text before `traceEvents` is sound, so that the key is one and not part of a string."""
    for depth in range(1, _DEEPEST + 1):
        try:
            decoder(dict).decode(bytes(head) + b'"traceEvents":[]' + b"}" * depth)
        except DECODE_ERRORS:
            continue
        return True
    return False
