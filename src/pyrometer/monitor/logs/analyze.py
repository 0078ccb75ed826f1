"""Logs of the monitor, read once from beginning to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pyrometer.errors import InputError
from pyrometer.monitor.logs.reading import files_of, tables_of
from pyrometer.monitor.logs.record import LogAnalysis, stamp
from pyrometer.monitor.logs.relating import correlations
from pyrometer.monitor.logs.tally import BINS, MOST_CELLS, OTHER, Tally
from pyrometer.monitor.logs.trend import change_points, quantile_s, trend_of
from pyrometer.monitor.logs.triggers import error_clusters, triggers
from pyrometer.text import shown_path


def analyze(paths: Sequence[str | Path], *, progress: Callable[[float], None] | None = None) -> LogAnalysis:
    """Read logs of JSON lines, plain or gzipped, and say what they hold; memory stays the same for any size.

    Args:
        paths: files, or folders of them.
        progress: told of the share of bytes that was read.

    Raises:
        InputError: no file, one that cannot be read, or none with a line of a log.
    """
    files = files_of([Path(path) for path in paths])
    if not files:
        raise InputError("no logs; name files of JSON lines, or a folder of them")
    tally = tally_of(files, progress)
    if not tally.lines:
        said = _left_out(tally) or "they are empty"
        raise InputError(
            f"{shown_path(files[0])}{' and others' * (len(files) > 1)}: no line of a log: {said}; "
            "lines are JSON with a timestamp, as the monitor writes them"
        )
    return analysis_of(tally, [shown_path(file) for file in files])


def tally_of(files: Sequence[Path], progress: Callable[[float], None] | None = None) -> Tally:
    """Count what is in files; while one table is counted, the next is parsed."""
    tally, sizes = Tally(), [max(file.stat().st_size, 1) for file in files]
    with ThreadPoolExecutor(1, "pyrometer-logs") as reader:
        for place, file in enumerate(files):
            tables = tables_of(file, tally.left_out)
            coming = reader.submit(next, tables, None)
            while (table := coming.result()) is not None:
                coming = reader.submit(next, tables, None)
                tally.add(table)
            if progress is not None:
                progress(sum(sizes[: place + 1]) / sum(sizes))
    return tally


def analysis_of(tally: Tally, files: list[str]) -> LogAnalysis:
    """The answers that follow from the counts."""
    points, members = trend_of(tally)
    everything = sum((tally.cells.row(key) for key in sorted(tally.cells.keys())), np.zeros(BINS, np.int64))
    p50, p95, p99 = (quantile_s(everything, share) for share in (0.5, 0.95, 0.99))
    has_time = tally.last_s >= 0
    return LogAnalysis(
        files=files,
        lines=tally.lines + sum(tally.left_out.values()),
        left_out=dict(sorted(tally.left_out.items())),
        num_requests=int(everything.sum()),
        num_slow=tally.num_slow,
        num_errors=sum(cluster.count for cluster in tally.clusters.found.values()),
        begins=stamp(tally.first_s) if has_time else None,
        ends=stamp(tally.last_s) if has_time else None,
        span_s=float(tally.last_s - tally.first_s) if has_time else 0.0,
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        trend=points,
        change_points=change_points(tally, points, members),
        correlations=correlations(tally),
        triggers=triggers(tally),
        clusters=error_clusters(tally),
        notes=list(_notes(tally)),
    )


def _left_out(tally: Tally) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(tally.left_out.items()))


def _notes(tally: Tally) -> Iterator[str]:
    if tally.left_out:
        total = sum(tally.left_out.values())
        yield f"{total} of {total + tally.lines} lines are none of a log and were left out: {_left_out(tally)}"
    if tally.num_without_time:
        yield f"{tally.num_without_time} lines have no time in UTC and count only in what needs none"
    if OTHER in tally.names:
        yield f"there are more than {MOST_CELLS} combinations of features; the rest counts as one"
    if not tally.has_all_shares or not tally.appearances.is_whole:
        yield "there are too many different values to keep all; triggers and what changed together are incomplete"
