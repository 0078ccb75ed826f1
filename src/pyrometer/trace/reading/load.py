"""One file to the tables of one rank."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pyrometer.errors import InputError
from pyrometer.garbage import uncollected
from pyrometer.trace.info import RankInfo
from pyrometer.trace.progress import tell
from pyrometer.trace.reading.chunks import CHUNK_BYTES, Document
from pyrometer.trace.reading.collector import Collector
from pyrometer.trace.reading.header import describe, name_devices, rank_of, read_header
from pyrometer.trace.reading.mistaken import WANTED
from pyrometer.trace.reading.ranks import FROM_FILE, FROM_ORDER
from pyrometer.trace.reading.repair_log import RepairLog
from pyrometer.trace.reading.source import PLAIN_BLOCK, Source

AHEAD = CHUNK_BYTES // PLAIN_BLOCK
"""Blocks that are read ahead: while one chunk is decoded, the next is unpacked."""


class Loaded(NamedTuple):
    """The tables of one file, and what is known about it."""

    info: RankInfo
    tables: Mapping[str, pl.DataFrame]


def load(path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> Loaded:
    """Read one file.

    Args:
        path: plain, gzip or zstd.
        chunk_bytes: text to decode at once.

    Raises:
        InputError: the file cannot be read, or is not a trace.
    """
    source = Source(path)
    repair_log = RepairLog(path.name)
    document = Document(_read_ahead(source), repair_log, chunk_bytes=chunk_bytes)
    collector = Collector(repair_log)
    with uncollected():
        for batch in document.batches():
            collector.add(batch)
            tell(source.share, f"reading {path.name}")
        header = _header(path, source, document, repair_log)
        rank = rank_of(header)
        tables = collector.tables(rank or 0)
    _refuse_other_list(path, document, tables, repair_log.num_lost)
    described = describe(header)
    described["devices"] = name_devices(described["devices"], tables["events"])
    info = RankInfo(
        rank=rank or 0,
        rank_from=FROM_ORDER if rank is None else FROM_FILE,
        path=str(path),
        raw_bytes=source.num_bytes,
        num_events=document.num_events,
        num_lost_events=repair_log.num_lost,
        repaired=repair_log.repairs(),
        unknown_categories=dict(collector.unknown_categories),
        **described,
    )
    return Loaded(info, tables)


def _read_ahead(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same blocks, the next ones being read and decompressed meanwhile in a thread (zlib lets go of the GIL)."""
    iterator = iter(blocks)
    with ThreadPoolExecutor(1, thread_name_prefix="pyrometer-read") as pool:
        coming = deque(pool.submit(next, iterator, b"") for _ in range(AHEAD))
        while block := coming.popleft().result():
            coming.append(pool.submit(next, iterator, b""))
            yield block


def _header(path: Path, source: Source, document: Document, repair_log: RepairLog) -> dict[str, Any]:
    if source.num_bytes == 0:
        raise InputError(
            f"{path}: not a trace but an empty file; the export did not finish, or the profiler's schedule had ended"
        )
    if not document.has_events:
        raise InputError(_without_events(path, document))
    _tell_end(source, document, repair_log)
    return read_header(
        document.head, document.tail, repair_log, tail_at=document.num_bytes - len(document.tail)
    )


def _without_events(path: Path, document: Document) -> str:
    head = document.head.rstrip()
    if not head.endswith((b"}", b"]")):
        return f"{path}: ends (byte {document.num_bytes}) before its list of events begins; export the trace again"
    return f"{path}: JSON without a list traceEvents, so not a trace; {WANTED}"


def _tell_end(source: Source, document: Document, repair_log: RepairLog) -> None:
    """Say how the file ends, if not as it should."""
    place = f"after event {document.num_events} (byte {document.num_bytes})"
    lost = int(document.cut_at is not None)
    if source.damage == "corrupt":
        repair_log.tell("corrupt", f"compressed data is corrupt {place}", lost=lost, byte=document.num_bytes)
    elif source.damage == "cut" or lost:
        repair_log.tell("truncated", f"truncated {place}", lost=lost, byte=document.num_bytes)
    elif not document.closed:
        repair_log.tell(
            "missing_end", f"ends {place} without closing its list of events", byte=document.num_bytes
        )
    if source.damage == "padding":
        repair_log.note("garbage_at_end", byte=document.num_bytes)
    if not document.head and document.closed and document.tail.strip():
        repair_log.note("garbage_at_end", byte=document.num_bytes - len(document.tail))


def _refuse_other_list(
    path: Path, document: Document, tables: Mapping[str, pl.DataFrame], num_lost: int
) -> None:
    """A bare list may be anything; one in which nothing is an event is not a trace."""
    empty = not any(tables[name].height for name in ("events", "flows", "counters"))
    held = document.num_events or document.tail.strip() or document.cut_at is not None
    if not document.head and held and empty and num_lost >= document.num_events:
        raise InputError(f"{path}: a JSON list that holds no events, so not a trace; {WANTED}")
