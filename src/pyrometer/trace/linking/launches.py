"""Device work to the runtime call that launched it, by correlation and never by the name of the call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.rows import IntArray, row_numbers

LAUNCHERS = (Kind.RUNTIME, Kind.DRIVER)
LAUNCHED = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.SYNC)


class Launches(NamedTuple):
    """One row per linked device event; rows of `events`."""

    work: IntArray
    call: IntArray  # one call may have launched many: a graph
    op: IntArray  # the operator that the device event names itself by `External id`; -1 if none


def find_launches(events: pl.DataFrame) -> Launches:
    """Link device events to their launching calls; correlation 0 means none."""
    known = pl.col("correlation").is_not_null() & (pl.col("correlation") != 0)
    events = events.select("event", "kind", "correlation", "external")
    calls = (
        events.filter(is_kind(*LAUNCHERS) & known)
        .select("correlation", call="event")
        .unique("correlation", keep="first", maintain_order=True)
    )
    work = events.filter(is_kind(*LAUNCHED) & known)
    ops = (
        events.filter((pl.col("kind") == Kind.CPU_OP.value) & pl.col("external").is_not_null())
        .select("external", op="event")
        .unique("external", keep="last", maintain_order=True)
    )
    linked = (
        work.select("event", "correlation", "external")
        .join(calls, on="correlation", how="inner")
        .join(ops, on="external", how="left")
    )
    return Launches(
        linked["event"].to_numpy().astype(np.int64),
        linked["call"].to_numpy().astype(np.int64),
        row_numbers(linked["op"]),
    )
