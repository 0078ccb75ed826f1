"""Log files as tables, one block after the other: memory stays the same for any number of gigabytes.

What is no line of a log is counted by kind and left out: a truncated line, a run of NUL bytes that a crash left behind, lines of other
programs in the same file. A block in which all is well is parsed at once; another is halved until the bad lines stand alone.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
import polars as pl

from pyrometer.errors import InputError

BLOCK_BYTES = 8 << 20
LONGEST_LINE = 1 << 20
_NEWLINE, _OPENS, _CLOSES = b"\n{}"

COLUMNS: dict[str, pl.DataType] = {
    "timestamp": pl.String(),
    "event": pl.String(),
    "host": pl.String(),
    "pid": pl.Int64(),
    "call": pl.String(),
    "version": pl.String(),
    "device": pl.String(),
    "shape": pl.String(),
    "batch": pl.Int64(),
    "latency_s": pl.Float64(),
    "compilations": pl.Float64(),
    "graph_breaks": pl.Float64(),
    "error": pl.String(),
}


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The log files that are named, or lie in the folders that are; the oldest of each folder first.

    Raises:
        InputError: a path leads nowhere, or a folder holds no log.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = [file for file in path.iterdir() if file.is_file() and _is_log(file)]
            if not inside:
                raise InputError(
                    f"{path}: holds no log; name a folder with files such as events.jsonl, or files"
                )
            found += sorted(inside, key=lambda file: (file.stat().st_mtime, file.name))
        elif path.is_file():
            found.append(path)
        else:
            raise InputError(f"{path}: no such file; name a log of JSON lines, or a folder of them")
    return found


def _is_log(file: Path) -> bool:
    """Whether a file of a folder is a log; beside those of calls the monitor writes ticks, which are none."""
    return ".jsonl" in file.suffixes and not file.name.startswith("ticks-")


def tables_of(path: Path, left_out: Counter[str]) -> Iterator[pl.DataFrame]:
    """The lines of a file with the columns of `COLUMNS`, null where a line has none; counts what it leaves out.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with _opened(path) as file:
            yield from _parsed(_blocks(file, left_out), left_out)
    except (OSError, EOFError) as error:
        if isinstance(error, EOFError):  # a rotated file that was cut while it was compressed
            left_out["truncated"] += 1
            return
        raise InputError(f"{path}: cannot be read: {error.strerror or error}; pass another file") from error


def _opened(path: Path) -> IO[bytes]:
    # Closed by the caller, which is where it is used.
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb", buffering=0)  # type: ignore[return-value]


def _blocks(file: IO[bytes], left_out: Counter[str]) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; a line without end is passed over."""
    rest, overlong = b"", False
    while chunk := file.read(BLOCK_BYTES):
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            if overlong or len(rest) + len(chunk) > LONGEST_LINE:
                left_out["overlong"] += not overlong
                rest, overlong = b"", True
            else:
                rest += chunk
            continue
        block = chunk[chunk.find(b"\n") + 1 : cut] if overlong else rest + chunk[:cut]
        rest, overlong = chunk[cut:], False
        if block:
            yield block
    if rest:
        yield rest


def _parsed(blocks: Iterable[bytes], left_out: Counter[str]) -> Iterator[pl.DataFrame]:
    """Tables of blocks; after one with bad lines the next is looked through before it is parsed, not after that failed."""
    is_bad = False
    for block in blocks:
        table = None if is_bad else _table(block)
        if table is None:
            before = left_out.total()
            yield from _halved(_screened(block, left_out), left_out)
            is_bad = left_out.total() > before
        elif table.height:
            yield table


def _screened(block: bytes, left_out: Counter[str]) -> bytes:
    """A block without the lines that do not even begin and end like an object; most bad lines are of these."""
    letters = np.frombuffer(block, np.uint8)
    ends = np.append(np.flatnonzero(letters == _NEWLINE), len(letters))
    starts = np.concatenate([[0], ends[:-1] + 1])
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    is_odd = (letters[starts] != _OPENS) | (letters[ends - 1] != _CLOSES)
    if b"\0" in block:
        is_odd[np.searchsorted(ends, np.flatnonzero(letters == 0))] = True
    kept, begin = [], 0
    for start, end in zip(starts[is_odd].tolist(), ends[is_odd].tolist(), strict=True):
        line = block[start:end]
        fault = _fault(line) if line.strip() else None
        if fault is not None:
            left_out[fault] += 1
        if fault is not None or not line.strip():
            kept.append(block[begin:start])
            begin = end + 1
    return b"".join([*kept, block[begin:]])


def _halved(block: bytes, left_out: Counter[str]) -> Iterator[pl.DataFrame]:
    """Tables of the parts of a block in which all is well; a bad line ends up alone, and is counted."""
    table = _table(block) if block else None
    if table is not None:
        yield table
        return
    middle = block.find(b"\n", len(block) // 2) + 1 or block.rfind(b"\n") + 1
    if middle:
        for half in (block[:middle].rstrip(b"\n"), block[middle:]):
            yield from _halved(half, left_out)
    elif block:
        left_out[_fault(block) or "foreign"] += 1  # JSON to one parser and none to the other


def _fault(line: bytes) -> str | None:
    """Why a line is none of a log; `None` for one that is."""
    if b"\0" in line:
        return "NUL bytes"
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "truncated" if line.lstrip().startswith(b"{") else "foreign"
    return None


def _table(block: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_ndjson(block, schema=COLUMNS, ignore_errors=True)
    except pl.exceptions.PolarsError:
        return None
