"""The bytes of a trace file: decompressed in blocks, by what the file holds and not by what it is called."""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import ELOOP
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pyrometer.errors import InputError
from pyrometer.trace.reading.mistaken import refuse_mistaken

PLAIN_BLOCK = 1 << 20
PACKED_BLOCK = 1 << 16  # gzipped traces shrink 10 to 20 times

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
UTF8_MARK = b"\xef\xbb\xbf"

Damage = Literal["", "cut", "corrupt", "padding"]


class Source:
    """One file, read once from its start.

    Iterating gives blocks of the uncompressed text. Afterwards `num_bytes` is its size, and `damage` tells what was
    wrong with the container: `cut` (it ends early), `corrupt` (it cannot be decompressed further) or `padding`
    (something else follows it).

    Raises:
        InputError: the file cannot be opened, is something other than a trace, or needs a package for zstd.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_bytes = 0
        self.num_read = 0  # bytes of the file itself, packed as they are
        self._size = 0
        self.damage: Damage = ""

    @property
    def share(self) -> float:
        """How much of the file has been read; 0 where nobody knows its size."""
        return self.num_read / self._size if self._size else 0.0

    def __iter__(self) -> Iterator[bytes]:
        first = True
        with _open(self.path) as file:
            self._size = os.fstat(file.fileno()).st_size
            for block in self._blocks(file):
                if first:
                    refuse_mistaken(self.path, block)
                self.num_bytes += len(block)
                yield block.removeprefix(UTF8_MARK) if first else block
                first = False

    def _blocks(self, file: BinaryIO) -> Iterator[bytes]:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(GZIP):
            return self._gunzipped(file)
        if magic == ZSTD:
            zstd = _zstd(self.path)
            return self._decompressed(file, ZSTD, zstd.ZstdDecompressor, (zstd.ZstdError,))
        return self._plain(file)

    def _plain(self, file: BinaryIO) -> Iterator[bytes]:
        while block := file.read(PLAIN_BLOCK):
            self.num_read += len(block)
            yield block

    def _gunzipped(self, file: BinaryIO) -> Iterator[bytes]:
        """With isal where it is installed; damage is left to zlib, which gives all that comes before it."""
        fast, given = _isal(), 0
        if fast is not None:
            try:
                for block in self._decompressed(file, GZIP, lambda: fast.decompressobj(31), ()):
                    given += len(block)
                    yield block
            except fast.error:
                file.seek(0)
            else:
                return
        for block in self._decompressed(file, GZIP, lambda: zlib.decompressobj(31), (zlib.error,)):
            if given < len(block):
                yield block[given:]
            given = max(0, given - len(block))

    def _decompressed(
        self,
        file: BinaryIO,
        magic: bytes,
        new: Callable[[], Any],
        errors: tuple[type[Exception], ...],
    ) -> Iterator[bytes]:
        decoder, self.num_read = new(), 0
        while packed := file.read(PACKED_BLOCK):
            self.num_read += len(packed)
            while packed:
                if decoder.eof:  # a further member follows, or something else
                    packed += file.read(len(magic))
                    if not packed.startswith(magic):
                        self.damage = "padding" if packed.strip(b"\0") else ""
                        return
                    decoder = new()
                before = decoder.copy() if hasattr(decoder, "copy") else None
                try:
                    text = decoder.decompress(packed)
                except errors:
                    self.damage = "corrupt"
                    if before is not None:
                        yield _until_corrupt(before, packed)
                    return
                if text:
                    yield text
                packed = decoder.unused_data if decoder.eof else b""
        if not decoder.eof:
            self.damage = "cut"


def _until_corrupt(decoder: Any, packed: bytes) -> bytes:
    """Everything before the first byte that does not fit."""
    text = bytearray()
    with suppress(zlib.error):  # the caller tells
        for i in range(len(packed)):
            text += decoder.decompress(packed[i : i + 1])
    return bytes(text)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; pass a trace file, a folder of them or a pattern") from error
    except OSError as error:
        if error.errno == ELOOP:
            raise InputError(
                f"{path}: a symbolic link that leads to itself; pass the file it should lead to"
            ) from error
        raise InputError(f"{path}: cannot be read ({error.strerror}); pass a file that can") from error


@cache
def _isal() -> Any:
    """A zlib that unpacks several times faster, where the package `isal` is installed."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return None


def _zstd(path: Path) -> Any:
    home = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return importlib.import_module(home)
    except ImportError as error:
        raise InputError(
            f"{path}: compressed with zstd, which Python reads from 3.14 on; pip install pyrometer[zstd]"
        ) from error
