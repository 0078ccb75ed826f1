"""Clocks of the ranks against each other, from collectives that end everywhere at the same moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pyrometer.trace.jobs.job import ClockOffset
from pyrometer.trace.jobs.semantics import ENDS_TOGETHER
from pyrometer.trace.rows import IntArray

MIN_FOR_DRIFT = 30
"""Collectives that it takes to tell a drift from noise."""

SAME_CLOCK_NS = 1_000_000
"""Ranks of one host read one clock: a smaller offset is that of leaving the collective, and is not corrected."""


def estimate_clocks(calls: pl.DataFrame, hosts: Mapping[int, str | None]) -> list[ClockOffset]:
    """Estimate the offset of every rank's clock to that of the lowest rank.

    The offset is the median, over matched collectives that no rank can leave before the last has come, of a rank's end
    less the middle end of all ranks. Ranks that share no collective with the reference are reached through groups in
    between. The median bears any number of wrong matches below a half.

    Args:
        calls: `match_calls(...).calls`, in unix time.
        hosts: of all ranks, where the traces tell them.
    """
    ends = _ends(calls)
    ranks = sorted(hosts)
    deviations = ends.group_by("key", "rank").agg(middle("deviation").alias("offset"), pl.len().alias("n"))
    offset = _connect(deviations)
    reference = offset.get(ranks[0], 0) if ranks else 0
    offset = {rank: value - reference for rank, value in offset.items()}
    rests = _residuals(ends, offset)
    counts = dict(ends.group_by("rank").len().iter_rows())
    estimate = []
    for rank in ranks:
        own = offset.get(rank, 0)
        rest = rests.get(rank, np.empty((0, 2), np.int64))
        drift = _drift(rest)
        residual = int(np.median(np.abs(rest[:, 1]))) if len(rest) else None
        applied = own if _is_other_clock(hosts[rank], hosts[ranks[0]], own, residual or 0) else 0
        estimate.append(
            ClockOffset(
                rank=rank,
                offset_ns=own,
                applied_ns=applied,
                residual_ns=residual,
                drift_ppm=drift,
                num_collectives=counts.get(rank, 0),
            )
        )
    return estimate


def align(calls: pl.DataFrame, clocks: Sequence[ClockOffset]) -> pl.DataFrame:
    """The calls with all times on the reference rank's clock."""
    table = pl.DataFrame(
        {"rank": [clock.rank for clock in clocks], "offset": [clock.applied_ns for clock in clocks]},
        schema={"rank": pl.Int64, "offset": pl.Int64},
    )
    moved = calls.join(table, on="rank", how="left", maintain_order="left")
    return moved.with_columns(
        pl.col(name) - pl.col("offset").fill_null(0) for name in ("start_ns", "end_ns")
    ).drop("offset")


def _ends(calls: pl.DataFrame) -> pl.DataFrame:
    """Ends of the collectives that end together, as deviations from the middle end of their ranks."""
    together = calls.filter(
        pl.col("name").is_in(ENDS_TOGETHER) & pl.col("end_ns").is_not_null() & (pl.col("num_ranks") > 1)
    )
    # Where most calls have all their ranks, the others only blur the middle.
    full = pl.col("num_ranks") == pl.col("num_ranks").max().over("key")
    together = together.filter(full).with_columns(middle=middle("end_ns").over("match"))
    return together.select("key", "match", "rank", "end_ns", deviation=pl.col("end_ns") - pl.col("middle"))


def middle(column: str) -> pl.Expr:
    """The median in integers: these times do not fit a float."""
    ordered = pl.col(column).sort()
    return (ordered.get((pl.len() - 1) // 2) + ordered.get(pl.len() // 2)) // 2


def _connect(deviations: pl.DataFrame) -> dict[int, int]:
    """Offsets of all ranks on one scale: groups that share a rank are tied together by it."""
    groups: dict[Any, dict[int, int]] = {}
    for key, rank, value, _ in deviations.iter_rows():
        groups.setdefault(key, {})[rank] = value
    left = sorted(groups.values(), key=lambda held: (-len(held), min(held)))
    offset: dict[int, int] = dict(left.pop(0)) if left else {}
    while left:
        tied = next((held for held in left if held.keys() & offset.keys()), None)
        if tied is None:
            break  # a part of the job that never met this one: its clocks stay as the files tell them
        left.remove(tied)
        shared = sorted(offset[rank] - tied[rank] for rank in tied.keys() & offset.keys())
        shift = shared[len(shared) // 2]
        for rank, value in tied.items():
            offset.setdefault(rank, value + shift)
    return offset


def _residuals(ends: pl.DataFrame, offset: dict[int, int]) -> dict[int, IntArray]:
    """Moment and deviation of the ends of each rank, after correction."""
    table = pl.DataFrame(
        {"rank": list(offset), "offset": list(offset.values())}, schema={"rank": pl.Int64, "offset": pl.Int64}
    )
    held = ends.join(table, on="rank", how="inner").select(
        "match", "rank", end=pl.col("end_ns") - pl.col("offset")
    )
    rest = held.with_columns(rest=pl.col("end") - middle("end").over("match")).sort("rank", "end")
    ranks, firsts = np.unique(rest["rank"].to_numpy(), return_index=True)
    parts = np.split(rest.select("end", "rest").to_numpy(), firsts[1:])
    return dict(zip(ranks.tolist(), parts, strict=True)) if rest.height else {}


def _drift(rest: IntArray) -> float | None:
    if len(rest) < MIN_FOR_DRIFT:
        return None
    third = len(rest) // 3
    early, late = rest[:third], rest[-third:]
    apart = int(late[third // 2, 0] - early[third // 2, 0])
    if apart <= 0:
        return None
    return float((np.median(late[:, 1]) - np.median(early[:, 1])) / apart * 1e6)


def _is_other_clock(host: str | None, reference: str | None, offset: int, residual: int) -> bool:
    same_host = host is not None and host == reference
    return not same_host or (abs(offset) > SAME_CLOCK_NS and abs(offset) > 10 * residual)
