"""Tracks in the order in which they are drawn: streams, the threads that drive them, then the other threads."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.rows import IntArray
from pyrometer.trace.timing.placing import place_slices
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.record import TrackView

BUSY_SHARE = 0.02
"""Threads with at least this share of the host's slices stand above the others."""


def find_tracks(trace: RankTrace) -> tuple[list[TrackView], IntArray]:
    """Tracks that hold slices, and for each row of the trace's tracks its place among them; -1 for the rest."""
    placed = place_slices(trace)
    rows = (
        placed.group_by("track")
        .agg(
            num_rows=pl.col("lane").max() + 1,
            num_slices=pl.len(),
            covered_ns=pl.col("dur_ns").filter(pl.col("lane") == 0).sum(),
        )
        .join(trace.tracks, on="track", how="left")
        .with_columns(pl.col("is_device").fill_null(value=False))
        .with_columns(share=pl.col("num_slices") / pl.col("num_slices").sum().over("is_device"))
        .with_columns(
            group=pl.when(pl.col("is_device"))
            .then(0)
            .when(pl.col("share") >= BUSY_SHARE)
            .then(1)
            .otherwise(2),
            number=pl.col("tid").cast(pl.Int64, strict=False).fill_null(2**62),
            longest=pl.when("is_device").then(0).otherwise(pl.col("covered_ns")),  # of threads the main one
        )
        .sort("group", "longest", "pid", "number", "track", descending=[False, True, False, False, False])
    )
    order = np.full(int(placed["track"].max() or 0) + 1, -1, np.int64)  # type: ignore[arg-type]
    order[rows["track"].to_numpy()] = np.arange(rows.height)
    return [_view(row) for row in rows.iter_rows(named=True)], order


def _view(row: dict[str, object]) -> TrackView:
    pid, tid, is_device = str(row["pid"] or ""), str(row["tid"] or ""), bool(row["is_device"])
    plain = _numbered("stream" if is_device else "thread", tid)
    return TrackView(
        name=str(row["thread_name"] or "").strip() or plain,
        process=_numbered("device", pid)
        if is_device
        else str(row["process_name"] or "").strip() or _numbered("process", pid),
        is_device=is_device,
        num_rows=int(str(row["num_rows"])),
        pid=pid,
        tid=tid,
    )


def _numbered(word: str, number: str) -> str:
    """Such as 'stream 7'; some profilers write the word into the number themselves."""
    return number if number.startswith(f"{word} ") else f"{word} {number}".strip()
