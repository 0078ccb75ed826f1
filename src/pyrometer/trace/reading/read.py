"""Opening traces: files in, a `Trace` out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import polars as pl

from pyrometer.trace.reading.cache import SMALLEST_RAW, Cache, content_key, default_folder
from pyrometer.trace.reading.load import Loaded
from pyrometer.trace.reading.paths import find_files
from pyrometer.trace.reading.ranks import FROM_FILE, number_ranks
from pyrometer.trace.reading.repair_log import refuse, renamed
from pyrometer.trace.reading.workers import load_all
from pyrometer.trace.trace import RankTrace, Trace


def read_trace(
    paths: str | Path | Sequence[str | Path],
    *,
    strict: bool = False,
    cache: Path | Literal["auto"] | None = "auto",
    workers: int | None = None,
) -> Trace:
    """Read PyTorch traces, one file per rank.

    Plain, gzip or zstd; of any age and vendor. Damage is mended event by event, counted and located in `RankInfo.repaired`:
    what can be read is read.

    Args:
        paths: files, patterns or folders.
        strict: refuse a damaged file instead of mending it.
        cache: folder of traces in columns, from which a file that was read before opens many times faster; `auto` is
            described at `pyrometer.trace.reading.cache.default_folder`, None does without.
        workers: processes for several files; by default as many as processors and free memory allow.

    Raises:
        InputError: a file cannot be read or is not a trace, two files are of the same rank, or `strict` met damage.

    >>> import json, pathlib, tempfile
    >>> event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 5, "dur": 2.5}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "trace.json"
    ...     _ = path.write_text(json.dumps({"traceEvents": [event]}))
    ...     trace = read_trace(path)
    >>> trace.rank().tables["events"].select("name", "start_ns", "dur_ns").rows()
    [('aten::add', 5000, 2500)]
    """
    files = find_files(paths)
    folder = default_folder() if cache == "auto" else cache
    loaded = _open_all(files, None if folder is None else Cache(folder), workers)
    if strict:
        for one in loaded:
            refuse(one.info.repaired)
    ranks = [one.info.rank if one.info.rank_from == FROM_FILE else None for one in loaded]
    numbers = number_ranks(list(zip(files, ranks, strict=True)))
    return Trace(
        tuple(
            numbered(RankTrace(one.info, one.tables), *number)
            for one, number in zip(loaded, numbers, strict=True)
        )
    )


def _open_all(files: Sequence[Path], cache: Cache | None, workers: int | None) -> list[Loaded]:
    """Read every file, those of the cache from there."""
    found: dict[Path, Loaded] = {}
    keys: dict[Path, str] = {}
    notes: dict[Path, list[str]] = {path: [] for path in files}
    if cache is not None:
        for path in files:
            try:
                keys[path] = content_key(path)
            except OSError:  # told when it is read
                continue
            entry, note = cache.get(keys[path])
            if entry is not None:
                found[path] = entry
            notes[path] += [note] if note else []
    missing = [path for path in files if path not in found]
    for path, loaded in zip(missing, load_all(missing, workers=workers), strict=True):
        found[path] = loaded
        if cache is not None and path in keys and loaded.info.raw_bytes >= SMALLEST_RAW:
            note = cache.put(keys[path], loaded)
            notes[path] += [note] if note else []
    return [_described(found[path], path, notes[path]) for path in files]


def _described(loaded: Loaded, path: Path, notes: list[str]) -> Loaded:
    """The same under the name that the file has now."""
    info = loaded.info
    repaired = renamed(info.repaired, Path(info.path).name, path.name)
    return loaded._replace(
        info=msgspec.structs.replace(info, path=str(path), repaired=repaired, notes=[*info.notes, *notes])
    )


def numbered(trace: RankTrace, rank: int, source: str) -> RankTrace:
    """The same as another rank, and where its number comes from; nothing of it may have been linked yet."""
    tables = trace.tables
    if rank != trace.rank:
        tables = {
            name: table.with_columns(rank=pl.lit(rank, pl.Int32)) if "rank" in table.columns else table
            for name, table in tables.items()
        }
    return RankTrace(msgspec.structs.replace(trace.info, rank=rank, rank_from=source), tables)
