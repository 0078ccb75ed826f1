"""Device work to the runtime call that launched it, by correlation and never by the name of the call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import Kind

IntArray = npt.NDArray[np.int64]

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
    calls = (
        events.filter(pl.col("kind").is_in([k.value for k in LAUNCHERS]) & known)
        .select("correlation", call="event")
        .unique("correlation", keep="first", maintain_order=True)
    )
    work = events.filter(pl.col("kind").is_in([k.value for k in LAUNCHED]) & known)
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
        linked["op"].cast(pl.Int64).fill_null(-1).to_numpy(),
    )
