"""Backward operators to the forward operator that recorded them, by sequence number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.patterns import BACKWARD
from pyrometer.trace.rows import IntArray


def forward_of(ops: pl.DataFrame, starts: IntArray) -> IntArray:
    """For each event the forward operator behind it, as a row of `events`; -1 where there is none.

    Autograd numbers a node when it is recorded: forward and backward operators share `Sequence number`, and backward
    ones name a forward thread. Of nested forward operators with the same number the last to begin recorded the node.

    Args:
        ops: the table `ops`.
        starts: `start_ns` of all events.
    """
    found = np.full(len(starts), -1, np.int64)
    numbered = ops.filter(pl.col("sequence").is_not_null() & (pl.col("sequence") >= 0))
    numbered = numbered.with_columns(start=pl.Series(starts[numbered["event"].to_numpy()]))
    is_second = pl.col("forward_thread").fill_null(0) != 0
    forward = numbered.filter(~is_second).select("sequence", "start", forward="event").sort("start")
    backward = numbered.filter(is_second).select("sequence", "start", "event").sort("start")
    linked = backward.join_asof(
        forward, on="start", by="sequence", strategy="backward", check_sortedness=False
    ).drop_nulls("forward")
    found[linked["event"].to_numpy()] = linked["forward"].to_numpy()
    return found


def is_backward(events: pl.DataFrame, ops: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Which events are operators of the backward pass: they name a forward thread, or autograd runs a node in them."""
    backward = np.zeros(events.height, bool)
    backward[ops.filter(pl.col("forward_thread").fill_null(0) != 0)["event"].to_numpy()] = True
    nodes = events.filter(
        (pl.col("kind") == Kind.CPU_OP.value) & pl.col("name").str.contains(BACKWARD).fill_null(value=False)
    )
    backward[nodes["event"].to_numpy()] = True
    return backward
