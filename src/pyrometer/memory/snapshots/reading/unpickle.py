"""Load a checked pickle: plain data only, with lists of segments and events handed over batch by batch."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pyrometer.errors import InputError
from pyrometer.garbage import uncollected
from pyrometer.memory.snapshots.reading.columns import Collector
from pyrometer.memory.snapshots.reading.scan import Kind, Scan
from pyrometer.memory.snapshots.reading.source import Reader, Source

_PIECE = 1 << 18
_FRAME_BYTES = 9
_BAD_DATA = (
    pickle.UnpicklingError, TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, EOFError,
    RecursionError, UnicodeDecodeError,
)  # fmt: skip


@dataclass
class Loaded:
    """What was in the file."""

    root: Any
    """The outermost object, with collectors where lists of segments and events were; of a cut-off file nothing."""
    complete: bool = True
    collected: list[tuple[Kind, Collector]] = field(default_factory=list)


def load(source: Source, scan: Scan, make: Callable[[Kind], Collector]) -> Loaded:
    """Load what a scan found fit to load.

    Args:
        source: the file.
        scan: of that file.
        make: makes what takes the items of a list of segments, or of a device's events.

    Raises:
        InputError: the pickle does not load, or its items are not what a snapshot has.
    """
    loaded = Loaded(None, scan.complete)

    def collector(kind: Kind) -> Collector:
        made = make(kind)
        loaded.collected.append((kind, made))
        return made

    token = secrets.token_hex(16)
    with closing(source.open()) as reader, uncollected():
        stream = _Edited(reader, _edits(scan, token), scan)
        try:
            root = _PlainUnpickler(stream, token, collector).load()
        except InputError as error:
            raise InputError(f"{source.path}: {error}") from error
        except _BAD_DATA as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"{source.path}: not a memory snapshot, or damaged: {text}") from error
    loaded.root = root if scan.complete else None
    return loaded


class _PlainUnpickler(pickle.Unpickler):
    """Refuses every class and function, but the collectors that were put into the stream by us."""

    def __init__(self, stream: _Edited, token: str, collector: Callable[[Kind], Collector]) -> None:
        super().__init__(stream)
        self._token = token
        self._collector = collector

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Only what carries the token of this one load."""
        if module_name != self._token:
            raise InputError(
                f"not a memory snapshot: it asks for {module_name}.{global_name}; nothing was executed"
            )
        kind: Kind = "events" if global_name == "events" else "segments"
        return lambda: self._collector(kind)

    def persistent_load(self, pid: Any) -> NoReturn:
        """Snapshots refer to nothing outside."""
        raise InputError(f"not a memory snapshot: it refers to something outside ({pid!r:.40})")


@dataclass(frozen=True)
class _Edit:
    """Bytes of the file that are read as others."""

    position: int
    length: int
    instead: bytes


def _edits(scan: Scan, token: str) -> list[_Edit]:
    """Lists become collectors; FRAME instructions, whose lengths would no longer be right, go."""
    edits = [_Edit(at, 1, _call(token, kind)) for at, kind in scan.lists if at < scan.end]
    edits += [_Edit(at, _FRAME_BYTES, b"") for at in scan.frames if at < scan.end]
    return sorted(edits, key=lambda edit: edit.position)


def _call(token: str, kind: Kind) -> bytes:
    """Instructions that push what `find_class` gives for the token, called without arguments."""
    texts = b"".join(b"\x8c" + bytes([len(text)]) + text for text in (token.encode(), kind.encode()))
    return texts + b"\x93)R"


class _Edited:
    """A file as an unpickler reads it, with edits applied while it passes."""

    def __init__(self, reader: Reader, edits: list[_Edit], scan: Scan) -> None:
        self._reader = reader
        self._edits = edits
        self._next_edit = 0
        self._end = scan.end
        self._closing = b"" if scan.complete else b"e."
        self._buffer = b""
        self._offset = 0

    def peek(self, num_bytes: int) -> bytes:
        """What comes next, without taking it."""
        self._fill(num_bytes)
        return self._buffer[self._offset : self._offset + num_bytes]

    def read(self, num_bytes: int) -> bytes:
        """Take what comes next."""
        self._fill(num_bytes)
        begin = self._offset
        self._offset += num_bytes
        return self._buffer[begin : self._offset]

    def readline(self) -> bytes:
        """No instruction that reads lines passes the scan."""
        raise InputError("not a memory snapshot: it holds an instruction with text in lines")

    def _fill(self, num_bytes: int) -> None:
        if len(self._buffer) - self._offset >= num_bytes:
            return
        pieces, have = [self._buffer[self._offset :]], len(self._buffer) - self._offset
        while have < num_bytes and (piece := self._piece()):
            pieces.append(piece)
            have += len(piece)
        self._buffer, self._offset = b"".join(pieces), 0

    def _piece(self) -> bytes:
        """The next piece of the file, edited; empty at the end."""
        base = self._reader.position
        if base >= self._end:
            closing, self._closing = self._closing, b""
            return closing
        raw = self._reader.read(min(_PIECE, self._end - base))
        made, begin = [], 0
        while self._next_edit < len(self._edits):
            edit = self._edits[self._next_edit]
            if edit.position >= base + len(raw):
                break
            self._next_edit += 1
            over = edit.position + edit.length - base - len(raw)
            raw += self._reader.read(over) if over > 0 else b""
            made += [raw[begin : edit.position - base], edit.instead]
            begin = edit.position - base + edit.length
        return b"".join([*made, raw[begin:]])
