"""Look through a whole pickle before any of it is loaded: only plain data, and no more of it than its size can justify.

What is checked: every instruction is one of those that make plain data; lengths stay within the file; memo numbers are no
larger than what was put; no tuple lies within another (hashing a deep one would overflow the C stack); lists and
dictionaries are no denser than in any real file; nesting is shallow. The pass also finds where the lists of segments and
events begin, so that loading can hand their items over batch by batch instead of keeping them all.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from pyrometer.errors import InputError
from pyrometer.memory.snapshots.reading import opcodes as op
from pyrometer.memory.snapshots.reading.columns import MAX_DEVICES
from pyrometer.memory.snapshots.reading.source import CHUNK, CutOffError, Reader, Source
from pyrometer.memory.snapshots.reading.tokens import tokens
from pyrometer.quantity import counted

MAX_DEPTH = 64
_SPARE_CONTAINERS = 10_000
_BYTES_PER_CONTAINER = 6
"""An event without frames takes sixty bytes for a dictionary, a list and perhaps a tuple."""
_SPARE_MEMO = 1000
_LOOKAHEAD = 32

_ALLOWED = op.table(op.FIXED) > 0
_PUT = np.isin(np.arange(256), op.PUTS)
_SCALAR = np.isin(np.arange(256), list(op.SCALARS))
_STRING = np.isin(np.arange(256), list(op.STRINGS))
_CONTAINER = np.isin(np.arange(256), [op.EMPTY_LIST, op.EMPTY_DICT, 0x85, 0x86, 0x87])
_DEPTH = np.zeros(256, np.int32)
_DEPTH[[op.MARK]] = 1
_DEPTH[[op.APPENDS, op.SETITEMS]] = -1

Kind = Literal["segments", "events"]


@dataclass
class Scan:
    """What the pass found."""

    protocol: int = 0
    end: int = 0
    """How many bytes to load."""
    complete: bool = False
    """Whether the pickle ends as it should."""
    frames: list[int] = field(default_factory=list)
    """Where FRAME instructions stand, which say only how to buffer."""
    lists: list[tuple[int, Kind]] = field(default_factory=list)
    """Where the lists of segments, and of one device's events each, are made."""


@dataclass
class _Piece:
    """The instructions of one piece of the file."""

    starts: npt.NDArray[np.int64]
    codes: npt.NDArray[np.uint8]
    depth: npt.NDArray[np.int32]
    """Open marks before each."""
    text: npt.NDArray[np.uint8]
    base: int


def scan(source: Source) -> Scan:
    """Check a pickle from end to end.

    Raises:
        InputError: it holds anything but plain data, is damaged, or is a memory bomb.
    """
    checker = _Checker(source)
    with closing(source.open()) as reader:
        left = b""
        while not checker.stopped:
            left, more = _next_piece(reader, left, checker)
            if not more:
                break
    return checker.found()


def _next_piece(reader: Reader, left: bytes, checker: _Checker) -> tuple[bytes, bool]:
    """Read on and check what begins in the piece; returns what must be looked at again, and whether there is more."""
    try:
        fresh = reader.read(CHUNK)
    except CutOffError:
        fresh = b""
    raw = left + fresh
    last = not fresh
    usable = len(raw) if last else max(0, len(raw) - _LOOKAHEAD)
    text = np.frombuffer(raw + bytes(_LOOKAHEAD), np.uint8)
    checker.check(text, usable, len(raw), last=last)
    return raw[usable:], not last


class _Checker:
    """Carries what must be known from piece to piece."""

    def __init__(self, source: Source) -> None:
        self._path, self._packed = source.path, source.packed
        self._base = 0
        self._next = 0
        self._depth = 0
        self._num_puts = 0
        self._num_containers = 0
        self._recent = np.zeros(0, np.uint8)
        self._scan = Scan()
        self._finder = _ListFinder(self._scan)
        self._size = 0
        self.stopped = False

    def check(self, text: npt.NDArray[np.uint8], usable: int, size: int, *, last: bool) -> None:
        """Check the instructions that begin in the first `usable` bytes."""
        found = tokens(text, self._next - self._base, usable)
        starts, codes = found.starts, text[found.starts]
        starts, codes = self._until_stop(starts, codes)
        if self._base == 0 and usable:
            self._check_start(text)
        self._check_allowed(starts, codes)
        if found.too_long:
            raise InputError(
                f"{self._path}: not a memory snapshot, or damaged: it claims to hold a text of 1 GiB"
            )
        change = _DEPTH[codes]
        after = self._depth + np.cumsum(change, dtype=np.int32)
        piece = _Piece(starts, codes, after - change, text, self._base)
        self._check_sizes(piece)
        self._check_tuples(piece)
        self._check_memo(piece)
        self._finder.look(piece)
        if len(self._scan.lists) > MAX_DEVICES + 1:
            raise InputError(
                f"{self._path}: not a memory snapshot: events of more than {MAX_DEVICES} devices"
            )
        self._scan.frames += (starts[codes == op.FRAME] + self._base).tolist()
        self._depth = int(after[-1]) if len(after) else self._depth
        self._next = found.following + self._base
        self._size = self._base + size
        self._base += usable
        if last and not self.stopped:
            self._scan.end = self._finder.last_whole

    def found(self) -> Scan:
        """What loading needs to know."""
        scan = self._scan
        if not scan.end:
            where = f"at byte {self._size}"
            if self._packed:
                where = f"after {counted(self._size, 'byte')} of what is packed in it"
            raise InputError(
                f"{self._path}: the file is cut off {where}, before its first segment; copy or dump it again"
            )
        return scan

    def _until_stop(
        self, starts: npt.NDArray[np.int64], codes: npt.NDArray[np.uint8]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        stops = np.flatnonzero(codes == op.STOP)
        if not len(stops):
            return starts, codes
        self.stopped = self._scan.complete = True
        self._scan.end = int(starts[stops[0]]) + self._base + 1
        return starts[: stops[0] + 1], codes[: stops[0] + 1]

    def _check_start(self, text: npt.NDArray[np.uint8]) -> None:
        if text[0] != op.PROTO:
            raise InputError(
                f"{self._path}: not a pickle of protocol 2 or later; give what torch.cuda.memory._dump_snapshot wrote"
            )
        self._scan.protocol = int(text[1])
        if self._scan.protocol not in (2, 3, 4, 5):
            raise InputError(f"{self._path}: pickle protocol {self._scan.protocol}; 2 to 5 are known")

    def _check_allowed(self, starts: npt.NDArray[np.int64], codes: npt.NDArray[np.uint8]) -> None:
        refused = np.flatnonzero(~_ALLOWED[codes])
        if len(refused):
            first = refused[0]
            why = op.refusal(int(codes[first]), int(starts[first]) + self._base)
            raise InputError(f"{self._path}: not a memory snapshot: {why}")

    def _check_sizes(self, piece: _Piece) -> None:
        longs = piece.starts[piece.codes == op.LONG1]
        if len(longs) and int(piece.text[longs + 1].max()) > op.MAX_INT_BYTES:
            raise InputError(f"{self._path}: not a memory snapshot: it holds an integer of more than 9 bytes")
        if len(piece.depth) and (piece.depth.max() > MAX_DEPTH or piece.depth.min() < 0):
            raise InputError(
                f"{self._path}: not a memory snapshot: nested deeper than {MAX_DEPTH} levels, or unbalanced"
            )
        self._num_containers += int(_CONTAINER[piece.codes].sum())
        size = piece.base + (int(piece.starts[-1]) if len(piece.starts) else 0)
        if self._num_containers > _SPARE_CONTAINERS + size // _BYTES_PER_CONTAINER:
            raise InputError(
                f"{self._path}: not a memory snapshot: {self._num_containers} lists and dictionaries in {size} bytes "
                "would take more memory than any real one"
            )

    def _check_tuples(self, piece: _Piece) -> None:
        """The items of a tuple stand right before it, and are numbers or text."""
        plain = piece.codes[~_PUT[piece.codes]]
        joined = np.concatenate((self._recent, plain))
        for code, length in op.TUPLES.items():
            at = np.flatnonzero(plain == code) + len(self._recent)
            for back in range(1, length + 1):
                if len(at) and (at.min() < back or not _SCALAR[joined[at - back]].all()):
                    raise InputError(
                        f"{self._path}: not a memory snapshot: it holds tuples of other than numbers and text"
                    )
        self._recent = joined[-4:]

    def _check_memo(self, piece: _Piece) -> None:
        puts = np.cumsum(_PUT[piece.codes])
        at = np.flatnonzero(piece.codes == op.LONG_BINPUT)
        if len(at):
            where = piece.starts[at]
            number = np.zeros(len(at), np.int64)
            for k in range(4):
                number |= piece.text[where + 1 + k].astype(np.int64) << (8 * k)
            if (number > self._num_puts + puts[at] + _SPARE_MEMO).any():
                raise InputError(
                    f"{self._path}: not a memory snapshot: memo number {int(number.max())} is far beyond what was "
                    "stored, and would only take memory"
                )
        self._num_puts += int(puts[-1]) if len(puts) else 0


class _ListFinder:
    """Finds where the lists of segments and events are made, by the keys of the outermost dictionary.

    A single device's list is appended to the outer one without a mark; several come within one.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._seen: set[str] = set()
        self._state = "top"
        self._depth = 0
        self._item_depth = -1
        self.last_whole = 0

    def look(self, piece: _Piece) -> None:
        """Look through a piece."""
        at = 0
        keys = self._keys(piece)
        while at < len(piece.codes):
            if self._state == "idle":
                at = next((key for key in keys if key >= at), len(piece.codes))
                if at < len(piece.codes):
                    self._begin(piece, at)
                    at += 1
            elif self._state == "devices":
                at = self._devices(piece, at)
            else:
                self._step(piece, at)
                at += 1
        self._note_whole(piece)

    def _keys(self, piece: _Piece) -> list[int]:
        """Positions among the instructions of the two keys, at the outermost level."""
        outer = np.flatnonzero((piece.depth <= 1) & _STRING[piece.codes])
        return [int(i) for i in outer if self._text(piece, int(i)) in {"segments", "device_traces"}]

    @staticmethod
    def _text(piece: _Piece, at: int) -> str:
        prefix = int(piece.starts[at]) + 1
        begin = int(piece.starts[at]) + op.STRINGS[int(piece.codes[at])]
        length = int.from_bytes(bytes(piece.text[prefix:begin]), "little")
        return bytes(piece.text[begin : begin + min(length, _LOOKAHEAD)]).decode(errors="replace")

    def _begin(self, piece: _Piece, at: int) -> None:
        name = self._text(piece, at)
        if name not in self._seen:
            self._seen.add(name)
            self._state = name

    def _step(self, piece: _Piece, at: int) -> None:
        """One of the few instructions around the beginning of a list."""
        code, depth = int(piece.codes[at]), int(piece.depth[at])
        if code in op.PUTS or code in (op.PROTO, op.FRAME):
            return
        position = piece.base + int(piece.starts[at])
        if self._state in {"top", "segments"} and code == op.EMPTY_LIST:
            self._add(position, "segments", depth)
            self._seen.update({"segments"} if self._state == "segments" else {"segments", "device_traces"})
            self._state = "idle"
        elif self._state == "device_traces" and code == op.EMPTY_LIST:
            self._state = "outer"
        elif self._state == "outer" and code == op.EMPTY_LIST:
            self._add(position, "events", depth)
            self._state = "idle"
        elif self._state == "outer" and code == op.MARK:
            self._state, self._depth = "devices", depth + 1
        else:
            self._state = "idle"

    def _devices(self, piece: _Piece, at: int) -> int:
        """Every list at this depth is one device's, until the mark is closed."""
        below = np.flatnonzero(piece.depth[at:] < self._depth)
        end = at + int(below[0]) if len(below) else len(piece.codes)
        within = slice(at, end)
        lists = (
            np.flatnonzero((piece.codes[within] == op.EMPTY_LIST) & (piece.depth[within] == self._depth)) + at
        )
        for i in lists.tolist():
            self._add(piece.base + int(piece.starts[i]), "events", self._depth)
        if len(below):
            self._state = "idle"
        return end

    def _add(self, position: int, kind: Kind, depth: int) -> None:
        self._scan.lists.append((position, kind))
        self._item_depth = depth + 1

    def _note_whole(self, piece: _Piece) -> None:
        """Where the last whole segment or event of a batch ends, should the file end before the batch does."""
        if self._item_depth < 0:
            return
        begin = self._scan.lists[-1][0] - piece.base
        whole = np.flatnonzero(
            (piece.codes == op.SETITEMS) & (piece.depth == self._item_depth + 1) & (piece.starts > begin)
        )
        if len(whole):
            self.last_whole = piece.base + int(piece.starts[whole[-1]]) + 1
