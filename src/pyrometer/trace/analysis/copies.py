"""Copies and fills: how many bytes, how fast, from what memory, and what hid them.

The direction is read from the record's name (`Memcpy HtoD (Pinned -> Device)`) or, where the vendor writes one, its
`kind`. Bytes per nanosecond are GB/s, so that the achieved rate is bytes over the sum of durations with nothing
rounded; copies without a size (some vendors) count neither bytes nor time in it.
"""

from __future__ import annotations

import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.naming.copy_names import copy_direction
from pyrometer.trace.program.where import places_of, where
from pyrometer.trace.records.device import Copies, CopyKind, CopyPlace
from pyrometer.trace.timing.intervals import Intervals, intersect, length, merge, subtract, union
from pyrometer.trace.trace import RankTrace

SMALL_BYTES = 64 * 1024
"""Below this a copy costs its launch, not its bytes."""


@analysis("copies")
def copies(trace: RankTrace, *, top: int = 20) -> Copies:
    """Copies and fills by direction: bytes, achieved bandwidth, pinned or not, overlap with compute, places."""
    rows = _classified(trace)
    activity = trace.activity
    kernels = merge(activity.compute, activity.communication)
    kinds = [
        _summary(kind, memory, part, activity.compute, kernels)
        for (kind, memory), part in rows.partition_by(
            "copy", "memory", as_dict=True, maintain_order=True
        ).items()
    ]
    return Copies(
        kinds=sorted(kinds, key=lambda kind: -kind.total_ns),
        places=_places(trace, rows, top),
        num_copies=rows.height,
        total_bytes=int(rows["bytes"].sum()),
        total_ns=int(rows["dur_ns"].sum()),
    )


def _classified(trace: RankTrace) -> pl.DataFrame:
    name, direction = pl.col("name"), pl.coalesce(copy_direction(), copy_direction("copy_kind"))
    return trace.detail("copies").with_columns(
        copy=pl.when(is_kind(Kind.MEMSET)).then(pl.lit("memset")).otherwise(direction.fill_null("other")),
        memory=pl.when(name.str.contains("Pageable"))
        .then(pl.lit("pageable"))
        .when(name.str.contains("Pinned"))
        .then(pl.lit("pinned"))
        .when(name.str.contains(r"\(Host ->|-> Host\)"))
        .then(pl.lit("host")),
    )


def _summary(
    kind: str, memory: str | None, part: pl.DataFrame, compute: Intervals, kernels: Intervals
) -> CopyKind:
    busy = union(part["start_ns"].to_numpy(), part["end_ns"].to_numpy())
    sized = part.filter(pl.col("bytes").is_not_null())
    total, lasted = int(sized["bytes"].sum()), int(sized["dur_ns"].sum())
    small = int((sized["bytes"] < SMALL_BYTES).sum())
    return CopyKind(
        kind=kind,
        memory=memory,
        num_copies=part.height,
        total_bytes=total,
        total_ns=int(part["dur_ns"].sum()),
        gb_per_s=total / lasted if lasted else None,
        busy_ns=length(busy),
        overlapped_ns=length(intersect(busy, compute)),
        exposed_ns=length(subtract(busy, kernels)),
        num_small=small,
        small_share=small / sized.height if sized.height else 0.0,
    )


def _places(trace: RankTrace, rows: pl.DataFrame, top: int) -> list[CopyPlace]:
    placed = rows.select("event", "copy", "memory", "bytes", "dur_ns").hstack(places_of(trace, rows["event"]))
    groups = (
        placed.group_by("copy", "memory", "file", "line", "function", "module", "op", maintain_order=True)
        .agg(pl.len(), pl.col("bytes", "dur_ns").sum(), pl.col("event").first())
        .sort("dur_ns", descending=True, maintain_order=True)
    )
    return [
        CopyPlace(
            kind=row["copy"],
            memory=row["memory"],
            num_copies=row["len"],
            total_bytes=row["bytes"],
            total_ns=row["dur_ns"],
            where=where(trace, row["event"]),
        )
        for row in groups.head(top).iter_rows(named=True)
    ]
