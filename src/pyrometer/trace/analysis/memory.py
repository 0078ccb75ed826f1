"""Memory over time, from the allocations and frees that a trace with `profile_memory` holds.

`allocated` is what tensors hold, `reserved` what the caching allocator took from the device. An allocation belongs to the
innermost operator that does more than to allocate, and to the user's line and module around it. Churn is memory that is
allocated and freed again within one step (in a trace without steps, within the trace); temporary memory goes again within
one outermost operator. Both need addresses, which files before 2022 do not hold; there they are 0. `turnover` is churn per
step over the peak: a loop that allocates anew what it could keep shows as a turnover far above that of its neighbours, at
its line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pyrometer.place import Place
from pyrometer.quantity import Bytes
from pyrometer.trace.allocations import allocations
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.program.where import PLACE, place_of, places_of, where
from pyrometer.trace.records.memory import (
    AllocationSite,
    DeviceMemory,
    HeldMemory,
    Memory,
    MemoryTimeline,
    OpMemory,
    StepMemory,
)
from pyrometer.trace.rows import each_once
from pyrometer.trace.trace import RankTrace

MAX_POINTS = 2000


@analysis("memory")
def memory(trace: RankTrace, *, top: int = 20) -> Memory:
    """Memory over time: peaks and what holds them, allocations per operator and step, churn and its line."""
    rows = allocations(trace)
    in_steps = rows["step"].drop_nulls().n_unique()
    counted = rows.filter(pl.col("step").is_not_null()) if in_steps else rows
    num_steps = max(in_steps, 1)
    devices = [
        _device(trace, part, counted.filter(pl.col("device") == part["device"][0]), num_steps)
        for part in rows.partition_by("device", maintain_order=True)
    ]
    peaks = {device.device: device.peak_bytes for device in devices}
    return Memory(
        devices=devices,
        ops=_ops(trace, rows),
        steps=_steps(trace, rows),
        sites=_sites(trace, counted, num_steps, peaks)[:top],
        num_steps=num_steps,
    )


def _device(trace: RankTrace, events: pl.DataFrame, counted: pl.DataFrame, num_steps: int) -> DeviceMemory:
    is_relative = events["allocated_bytes"].null_count() > 0
    level = events["bytes"].cum_sum() if is_relative else events["allocated_bytes"]
    events = events.with_columns(level=level)
    at = int(level.arg_max() or 0)
    peak = events.row(at, named=True)
    made, freed = events.filter(pl.col("bytes") > 0), events.filter(pl.col("bytes") < 0)
    churn = _per_step(counted.filter("is_churn")["bytes"].sum(), num_steps)
    reserved = events["reserved_bytes"].max()
    has_addresses = events["addr"].null_count() == 0
    held = _held(events, at)
    return DeviceMemory(
        device=peak["device"],
        is_relative=is_relative,
        num_allocations=made.height,
        num_frees=freed.height,
        allocated_bytes=int(made["bytes"].sum()),
        freed_bytes=-int(freed["bytes"].sum()),
        net_bytes=int(events["bytes"].sum()),
        peak_bytes=peak["level"],
        peak_ns=peak["ts_ns"],
        peak_step=peak["step"],
        peak_where=_where(trace, peak),
        peak_reserved_bytes=reserved if isinstance(reserved, int) and reserved > 0 else None,
        at_peak_bytes=_by_category(held, peak["level"]) if has_addresses else {},
        held_at_peak=_holders(trace, held) if has_addresses else [],
        num_allocations_per_step=_per_step((counted["bytes"] > 0).sum(), num_steps),
        allocated_bytes_per_step=_per_step(counted.filter(pl.col("bytes") > 0)["bytes"].sum(), num_steps),
        churn_bytes_per_step=churn,
        turnover=churn / peak["level"] if peak["level"] > 0 else None,
        timeline=_timeline(events),
    )


def _per_step(amount: Any, num_steps: int) -> float:
    return float(amount) / num_steps


def _held(events: pl.DataFrame, at: int) -> pl.DataFrame:
    """Blocks that were allocated in the trace up to a row, and not freed by then."""
    moment = int(events["event"][at])
    return events.head(at + 1).filter(
        (pl.col("bytes") > 0) & (pl.col("freed_event").is_null() | (pl.col("freed_event") > moment))
    )


def _by_category(held: pl.DataFrame, peak_bytes: Bytes) -> dict[str, Bytes]:
    found = dict(held.group_by("category").agg(pl.col("bytes").sum()).sort("category").iter_rows())
    before = peak_bytes - sum(found.values())
    return {**found, "before_trace": before} if before else found


def _timeline(events: pl.DataFrame) -> MemoryTimeline:
    level = events["level"].to_numpy()
    chosen = events[_telling(level)]
    has_reserved = events["reserved_bytes"].null_count() == 0 and (events["reserved_bytes"] > 0).any()
    return MemoryTimeline(
        ts_ns=chosen["ts_ns"].to_list(),
        allocated_bytes=chosen["level"].to_list(),
        reserved_bytes=chosen["reserved_bytes"].to_list() if has_reserved else [],
        num_events=events.height,
    )


def _telling(level: np.ndarray) -> np.ndarray:
    """Rows that tell the course: of each stretch the first, lowest, highest and last one."""
    if len(level) <= MAX_POINTS:
        return np.arange(len(level))
    stretch = np.arange(len(level)) * (MAX_POINTS // 4) // len(level)
    frame = pl.DataFrame({"row": np.arange(len(level)), "stretch": stretch, "level": level})
    row, height = pl.col("row"), pl.col("level")
    rows = frame.group_by("stretch").agg(
        first=row.first(),
        last=row.last(),
        lowest=row.get(height.arg_min()),
        highest=row.get(height.arg_max()),
    )
    return each_once(rows.select("first", "last", "lowest", "highest").to_numpy().ravel())


def _where(trace: RankTrace, row: dict[str, int | None]) -> Place:
    event = row["op"] if row["op"] is not None else row["owner"]
    return Place() if event is None else where(trace, event)


def _by_place(trace: RankTrace, events: pl.DataFrame, *keys: str, **sums: pl.Expr) -> pl.DataFrame:
    """Sums over allocations by their place, all null outside of everything, and other keys; in order of first occurrence."""
    owner = pl.coalesce("op", "owner").fill_null(-1).alias("row")
    summed = events.group_by(*keys, owner, maintain_order=True).agg(**sums)
    known = summed["row"] >= 0
    places = places_of(trace, summed["row"].clip(0)).select(pl.when(known).then(pl.all()))
    placed = summed.hstack(places)
    return placed.group_by(*keys, *PLACE, maintain_order=True).agg(pl.col(*sums).sum())


def _holders(trace: RankTrace, held: pl.DataFrame, top: int = 10) -> list[HeldMemory]:
    grouped = _by_place(trace, held, bytes=pl.col("bytes").sum(), len=pl.len())
    return [
        HeldMemory(where=place_of(row), held_bytes=row["bytes"], num_blocks=row["len"])
        for row in grouped.sort("bytes", *PLACE, descending=[True, *[False] * len(PLACE)])
        .head(top)
        .iter_rows(named=True)
    ]


def _sums() -> dict[str, pl.Expr]:
    size = pl.col("bytes")
    return {
        "num_allocations": (size > 0).sum(),
        "allocated_bytes": size.filter(size > 0).sum(),
        "freed_bytes": -size.filter(size < 0).sum(),
        "churn_bytes": size.filter("is_churn").sum(),
        "temporary_bytes": size.filter("is_temporary").sum(),
    }


def _ops(trace: RankTrace, rows: pl.DataFrame) -> list[OpMemory]:
    table = rows.with_columns(op=trace.events["name"].gather(rows["op"].cast(pl.UInt32)))
    is_kept = (pl.col("bytes") > 0) & pl.col("freed_event").is_null()
    grouped = table.group_by("device", "op", maintain_order=True).agg(
        **_sums(), kept_bytes=pl.col("bytes").filter(is_kept).sum()
    )
    ordered = grouped.sort("allocated_bytes", "device", "op", descending=[True, False, False])
    return [OpMemory(**row) for row in ordered.iter_rows(named=True)]


def _steps(trace: RankTrace, rows: pl.DataFrame) -> list[StepMemory]:
    level = pl.coalesce("allocated_bytes", pl.col("bytes").cum_sum().over("device"))
    names = trace.steps.select("step", "name")
    per_step = (
        rows.with_columns(level=level)
        .drop_nulls("step")
        .group_by("step", "device", maintain_order=True)
        .agg(**_sums(), net_bytes=pl.col("bytes").sum(), peak_bytes=pl.col("level").max())
        .join(names, on="step")
        .sort("step", "device")
    )
    return [StepMemory(**row) for row in per_step.drop("step", "temporary_bytes").iter_rows(named=True)]


def _sites(
    trace: RankTrace, counted: pl.DataFrame, num_steps: int, peaks: dict[str, Bytes]
) -> list[AllocationSite]:
    sums = _sums()
    del sums["freed_bytes"]
    grouped = _by_place(trace, counted.filter(pl.col("bytes") > 0), "device", **sums)
    ordered = grouped.sort("churn_bytes", "allocated_bytes", descending=True, maintain_order=True)
    return [
        AllocationSite(
            device=row["device"],
            where=place_of(row),
            num_allocations=row["num_allocations"],
            allocated_bytes=row["allocated_bytes"],
            churn_bytes=row["churn_bytes"],
            temporary_bytes=row["temporary_bytes"],
            num_allocations_per_step=_per_step(row["num_allocations"], num_steps),
            churn_bytes_per_step=_per_step(row["churn_bytes"], num_steps),
            turnover=_per_step(row["churn_bytes"], num_steps) / peaks[row["device"]]
            if peaks[row["device"]] > 0
            else None,
        )
        for row in ordered.iter_rows(named=True)
    ]
