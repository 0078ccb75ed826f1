"""What is drawn on the process `pyrometer`: findings, and the critical path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl

from pyrometer.record import Record, doc
from pyrometer.trace.analysis.critical_path import critical_path_segments
from pyrometer.trace.export.json_text import object_text, quoted
from pyrometer.trace.export.lanes import find_lanes
from pyrometer.trace.trace import RankTrace

CRITICAL = "critical path"

SLICES = pl.Schema(
    {"start_ns": pl.Int64, "end_ns": pl.Int64, "name": pl.String, "track": pl.String, "args": pl.String}
)


class Highlight(Record, frozen=True, kw_only=True):
    """A stretch of time to point at, such as a finding."""

    name: str
    start_ns: Annotated[int, doc("on the clock of the file")]
    end_ns: int
    track: Annotated[str, doc("thread of the process `pyrometer` on which it is drawn")] = "findings"
    detail: Annotated[dict[str, Any], doc("shown when it is selected")] = {}


def highlight_slices(highlights: Sequence[Highlight]) -> pl.DataFrame:
    """Highlights as the columns of `SLICES`."""
    rows = [
        (
            highlight.start_ns,
            highlight.end_ns,
            highlight.name,
            highlight.track,
            msgspec.json.encode(highlight.detail).decode(),
        )
        for highlight in highlights
    ]
    return pl.DataFrame(rows, schema=SLICES, orient="row")


def critical_slices(trace: RankTrace) -> pl.DataFrame:
    """The critical path as the columns of `SLICES`."""
    if not trace.activity.span_ns:
        return pl.DataFrame(schema=SLICES)
    pieces = critical_path_segments(trace)
    rows = pieces.filter(pl.col("end_ns") > pl.col("start_ns")).with_columns(pl.col("class").cast(pl.String))
    return rows.select(
        "start_ns",
        "end_ns",
        pl.coalesce("name", "class").alias("name"),
        pl.lit(CRITICAL).alias("track"),
        object_text([("class", quoted(rows["class"])), ("event", rows["event"].cast(pl.String))]).alias(
            "args"
        ),
    )


def on_lanes(slices: pl.DataFrame) -> pl.DataFrame:
    """Slices in order of start, those that would not nest on a track of their own."""
    ordered = slices.sort("track", "start_ns", -pl.col("end_ns"))
    number = ordered["track"].rank("dense").cast(pl.Int64).to_numpy()
    lane = find_lanes(number, ordered["start_ns"].to_numpy(), ordered["end_ns"].to_numpy())
    if np.any(lane):
        return ordered.with_columns(
            pl.when(pl.Series(lane > 0))
            .then(pl.format("{} {}", "track", pl.Series(lane + 1)))
            .otherwise("track")
            .alias("track")
        )
    return ordered
