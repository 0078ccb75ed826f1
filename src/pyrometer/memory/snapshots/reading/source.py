"""Where the bytes of a snapshot come from: a file, plain or packed by gzip, which can be read from its start again."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrometer.errors import InputError

CHUNK = 1 << 21
_STEP = 1 << 14
_GZIP = b"\x1f\x8b"
_OTHERS = {
    b"PK\x03\x04": "a zip archive, as torch.save writes; write it with torch.cuda.memory._dump_snapshot",
    b"<": "HTML; give the snapshot that the page was made from",
    b"{": "JSON; a snapshot is a pickle, as torch.cuda.memory._dump_snapshot writes",
    b"[": "JSON; a snapshot is a pickle, as torch.cuda.memory._dump_snapshot writes",
}
_PACKING_LIMIT = 500
"""No snapshot packs better than this; what does is a bomb, and unpacking it would take for ever."""
_SMALL = 1 << 28
"""Up to so many bytes may pack any way they like."""


class CutOffError(InputError):
    """The packed file ends before its contents do."""


@dataclass(frozen=True)
class Source:
    """A file that can be opened again and again."""

    path: Path
    packed: bool

    def open(self) -> Reader:
        """A new reader at the start."""
        return Reader(self)


class Reader:
    """Reads forward, in pieces, with errors in words."""

    def __init__(self, source: Source) -> None:
        self._source = source
        opener: Any = gzip.open if source.packed else open
        self._file: Any = opener(source.path, "rb")
        self._limit = max(_SMALL, source.path.stat().st_size * _PACKING_LIMIT)
        self.position = 0

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def read(self, num_bytes: int) -> bytes:
        """The next bytes; fewer only at the end.

        Raises:
            CutOffError: the packed file ends too early.
            InputError: it cannot be read or unpacked, or unpacks to absurdly much.
        """
        path = self._source.path
        try:
            found: bytes = self._unpacked(num_bytes) if self._source.packed else self._file.read(num_bytes)
        except EOFError as error:
            raise CutOffError(f"{path}: the packed file is cut off; copy it again") from error
        except (OSError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
        self.position += len(found)
        if self._source.packed and self.position > self._limit:
            raise InputError(
                f"{path}: unpacks to more than {_PACKING_LIMIT} times its size, which no snapshot does"
            )
        return found

    def _unpacked(self, num_bytes: int) -> bytes:
        """In small steps: of a file that is cut off, all that can be unpacked is used."""
        pieces: list[bytes] = []
        missing = num_bytes
        while missing:
            try:
                piece = self._file.read1(min(missing, _STEP))
            except EOFError:
                if pieces:
                    break
                raise
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)


def open_source(path: Path) -> Source:
    """Look at a file's first bytes.

    Raises:
        InputError: there is no such file, it is empty, or plainly something else.
    """
    if not path.is_file():
        raise InputError(
            f"{path}: {'is a folder' if path.is_dir() else 'no such file'}; give a memory snapshot"
        )
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not head:
        raise InputError(f"{path}: the file is empty; was the disk full when it was dumped?")
    for start, what in _OTHERS.items():
        if head.startswith(start):
            raise InputError(f"{path}: this is {what}")
    return Source(path, packed=head.startswith(_GZIP))
