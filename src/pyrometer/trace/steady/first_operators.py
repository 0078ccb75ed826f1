"""Operators whose own time is long because they are called for the first time: libraries that start, plans that are searched.

Nothing in the record says so: no call of the runtime lies within. The first of a name counts where no device does anything
meanwhile and its own time is `OUTLIER` times the median of its name, or of its name with the same shapes; of operators that
launch nothing only the latter, since what computes on the host takes longer for more of it.
"""

from __future__ import annotations

import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.patterns import MAY_WAIT, is_blocking_call, is_communication, is_data_loading
from pyrometer.trace.timing.intervals import covered
from pyrometer.trace.trace import RankTrace

LONG_NS = 1_000_000
"""Starting a library takes milliseconds."""

OUTLIER = 50
"""Times the median, from which on a first call is not the usual one."""


def first_operators(trace: RankTrace) -> pl.DataFrame:
    """Stretches of own time of such operators: `event, name, start_ns, end_ns, dur_ns, usual_ns, step`."""
    slow = _slow(trace)
    pieces = trace.links.pieces
    own = pl.DataFrame({"event": pieces.event, "low": pieces.start, "high": pieces.end}).with_columns(
        pl.col("event").cast(pl.UInt32)
    )
    stretches = own.join(slow, on="event").filter(pl.col("high") - pl.col("low") >= LONG_NS)
    alone = (stretches["high"] - stretches["low"]) - covered(
        trace.activity.device, stretches["low"].to_numpy(), stretches["high"].to_numpy()
    )
    return stretches.filter(alone >= LONG_NS).select(
        "event",
        "name",
        start_ns="low",
        end_ns="high",
        dur_ns=pl.col("high") - pl.col("low"),
        usual_ns="usual_ns",
        step="step",
    )


def _slow(trace: RankTrace) -> pl.DataFrame:
    """First calls far above the median: `event, name, step, usual_ns`."""
    ops = _of_slow_names(trace)
    ops = ops.join(
        trace.tables["ops"].select("event", "input_dims"), on="event", how="left", maintain_order="left"
    )
    calls = trace.device_work["parent"].drop_nulls().cast(pl.UInt32)
    launching = trace.events["op"].gather(calls).drop_nulls().cast(pl.UInt32)
    launches = pl.col("event").is_in(launching.unique().implode()).any().over("name")
    usual = pl.col("self_ns").sort().get((pl.len() - 1) // 2)  # of two the shorter
    alike = pl.col("input_dims").is_not_null() & (pl.len().over("name", "input_dims") > 1)
    return (
        ops.with_columns(
            is_first=pl.int_range(pl.len()).over("name") == 0,
            usual_ns=pl.when(alike)
            .then(usual.over("name", "input_dims"))
            .when(launches & (pl.len().over("name") > 1))
            .then(usual.over("name")),
        )
        .filter(
            pl.col("is_first")
            & (pl.col("self_ns") >= LONG_NS)
            & (pl.col("self_ns") >= OUTLIER * pl.col("usual_ns").clip(1))
        )
        .select("event", "name", "step", "usual_ns")
    )


def _of_slow_names(trace: RankTrace) -> pl.DataFrame:
    """The calls of operators whose first call is long enough to count: of a long trace mostly none, so nothing else is sorted."""
    waits = (
        is_blocking_call() | is_communication() | is_data_loading() | pl.col("name").str.contains(MAY_WAIT)
    )
    is_op = pl.col("kind") == Kind.CPU_OP.value
    firsts = trace.events.lazy().filter(is_op).select("kind", "name", "self_ns").unique("name", keep="first")
    slow = firsts.filter((pl.col("self_ns") >= LONG_NS) & ~waits.fill_null(value=False)).collect()["name"]
    return trace.events.filter(is_op & pl.col("name").is_in(slow.implode()))
