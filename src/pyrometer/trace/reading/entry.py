"""One file that holds a read trace: its tables as Arrow IPC, what is known about it, and a checksum.

    magic · tables, one after the other · JSON (names and sizes of the tables, the record) · its size · checksum

Arrow IPC with LZ4 is written twice as fast as Parquet, is read as fast, and is a tenth of the JSON.
"""

from __future__ import annotations

import hashlib
import io
import struct
from pathlib import Path
from typing import BinaryIO

import msgspec
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.info import RankInfo
from pyrometer.trace.reading.load import Loaded

MAGIC = b"pyrometer trace\n"
DIGEST_BYTES = 32
_SIZE = struct.Struct("<Q")


class BrokenEntryError(Exception):
    """An entry that is cut off, changed, or of other tables than today's."""


class _Contents(msgspec.Struct):
    sizes: dict[str, int]
    info: RankInfo


def write_entry(loaded: Loaded, path: Path) -> None:
    """Write an entry.

    Raises:
        OSError: it cannot be written.
    """
    with path.open("wb") as file:
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        sizes = {}
        _put(file, digest, MAGIC)
        for name, table in loaded.tables.items():
            buffer = io.BytesIO()
            table.write_ipc(buffer, compression="lz4")
            sizes[name] = buffer.tell()
            _put(file, digest, buffer.getbuffer())
        contents = msgspec.json.encode(_Contents(sizes, loaded.info))
        _put(file, digest, contents + _SIZE.pack(len(contents)))
        file.write(digest.digest())


def _put(file: BinaryIO, digest: hashlib.blake2b, data: bytes | memoryview) -> None:
    digest.update(data)
    file.write(data)


def read_entry(path: Path) -> Loaded:
    """Read an entry back.

    Raises:
        OSError: it cannot be read.
        BrokenEntryError: it is damaged, or does not fit `schema.TABLES`.
    """
    data = memoryview(path.read_bytes())
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if (
        hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() != digest
        or bytes(body[: len(MAGIC)]) != MAGIC
    ):
        raise BrokenEntryError(f"{path.name} is damaged")
    (length,) = _SIZE.unpack(body[-_SIZE.size :])
    try:
        contents = msgspec.json.decode(body[-_SIZE.size - length : -_SIZE.size], type=_Contents)
        tables = {}
        at = len(MAGIC)
        for name, size in contents.sizes.items():
            tables[name] = pl.read_ipc(bytes(body[at : at + size]))
            at += size
    except (msgspec.MsgspecError, pl.exceptions.PolarsError) as error:
        raise BrokenEntryError(f"{path.name} cannot be decoded: {error}") from error
    if {name: dict(table.schema) for name, table in tables.items()} != {
        name: schema.dtypes(table) for name, table in schema.TABLES.items()
    }:
        raise BrokenEntryError(f"{path.name} holds other tables")
    return Loaded(contents.info, tables)
