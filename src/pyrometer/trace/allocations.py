"""Allocations and frees of a trace: who made them, when each block was freed again, and what it held."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.program.phase_labels import phase_names
from pyrometer.trace.program.rollup import above, is_operator
from pyrometer.trace.rows import IntArray, nullable, pick
from pyrometer.trace.timing.innermost import innermost
from pyrometer.trace.trace import RankTrace, kept

ONLY_ALLOCATES = r"^aten::(empty|new_empty|resize_|set_|_empty_affine|_resize_output)"
"""Operators that get memory on behalf of the operator around them."""

DEVICE_TYPES = {
    0: "cpu",
    1: "cuda",
    3: "mkldnn",
    6: "hip",
    9: "xla",
    12: "xpu",
    13: "mps",
    15: "hpu",
    17: "mtia",
    20: "privateuseone",
}
"""As in `c10::DeviceType`."""

SINGLE = r"^\w+::"
CONTAINER = r"^autograd::"
"""Operators proper are `namespace::name`, which compiled graphs and nodes of autograd are not: those hold many."""

ACCUMULATES = r"AccumulateGrad"
KEY = ("device_type", "device_id", "addr")


@kept
def allocations(trace: RankTrace) -> pl.DataFrame:
    """One row per `[memory]` event, in order of time.

    Columns: `event, ts_ns, device, device_type, device_id, addr, bytes` (negative when freed), `allocated_bytes` and
    `reserved_bytes` of the device after it (null where the file does not say), `step`, and

    - `owner`: the innermost host event that was open on the thread, `op`: the innermost operator that does more than to
      allocate, `outermost`: the operator around all others, compiled graphs and nodes of autograd set aside; rows of
      `events`, null outside of any;
    - of an allocation whose free is in the trace: `freed_event`, `freed_ns`, `freed_step`;
    - `is_temporary`: freed again within the same outermost operator; `is_churn`: within the same step (in a trace without
      steps, within the trace);
    - `category`, only where it is certain: `temporary`; `activation`: made in the forward pass and freed in the backward
      pass; `gradient`: made where gradients are accumulated, or in the backward pass and freed by `zero_grad`;
      `optimizer_state`: made in the optimizer and never freed; `input`: made while loading data or copying it to the
      device; else `other`.
    """
    memory = trace.detail("memory").select(
        "event",
        "track",
        "step",
        "addr",
        pl.col("start_ns").alias("ts_ns"),
        pl.col("bytes").fill_null(0),
        pl.col("device_type").fill_null(0),
        pl.col("device_id").fill_null(-1),
        allocated_bytes="total_allocated_bytes",
        reserved_bytes="total_reserved_bytes",
    )
    owner = _owners(trace, memory)
    is_op = is_operator(trace)
    name = pl.col("name").str
    works, single, accumulates = (
        is_op & trace.mask(wanted)
        for wanted in (
            ~name.contains(ONLY_ALLOCATES),
            name.contains(SINGLE) & ~name.contains(CONTAINER),
            name.contains(ACCUMULATES),
        )
    )
    inner, worker = trace.nearest(is_op), trace.nearest(works)
    outer = trace.nearest(single & (above(trace, single) < 0))
    accumulating = trace.nearest(accumulates) >= 0

    def at_owner(rows: IntArray) -> pl.Series:
        return nullable(np.where(owner >= 0, rows[owner], -1), pl.Int32)

    placed = memory.with_columns(
        device=_device_name(),
        owner=at_owner(np.arange(len(inner))),
        op=at_owner(np.where(worker >= 0, worker, inner)),
        outermost=at_owner(outer),
        phase=pick(phase_names(trace), owner),
        accumulates=pl.Series((owner >= 0) & accumulating[owner]),
    )
    return _categorised(_paired(placed)).drop("track")


def _device_name() -> pl.Expr:
    kind = pl.col("device_type").replace_strict(DEVICE_TYPES, default="device", return_dtype=pl.String)
    return pl.when(pl.col("device_id") < 0).then(kind).otherwise(pl.format("{}:{}", kind, "device_id"))


def _owners(trace: RankTrace, memory: pl.DataFrame) -> IntArray:
    """The innermost host event on the thread of each, -1 where nothing is open.

    Old files spell the thread of these events differently, which makes it another track of the same process and thread.
    """
    if not memory.height:
        return np.empty(0, np.int64)
    host = trace.bounds_of(Kind.CPU_OP, Kind.PYTHON_FUNCTION, Kind.USER_ANNOTATION)["track"].unique()
    names = trace.tracks.select("track", thread=pl.concat_str("pid", "tid", separator="/", ignore_nulls=True))
    busy = names.filter(pl.col("track").is_in(host.implode())).unique(
        "thread", keep="first", maintain_order=True
    )
    same = names.join(busy.select("thread", busy="track"), on="thread", how="left", maintain_order="left")
    track = memory.join(same, on="track", how="left", maintain_order="left").select(
        pl.coalesce("busy", "track").cast(pl.Int64)
    )
    pieces = innermost(trace)
    if not len(pieces.start):
        return np.full(memory.height, -1, np.int64)
    moment = pieces.lanes.place(track.to_series().to_numpy(), memory["ts_ns"].to_numpy())
    last = np.searchsorted(pieces.start, moment, side="right") - 1
    inside = (last >= 0) & (moment < pieces.end[np.maximum(last, 0)])
    return np.asarray(np.where(inside, pieces.event[np.maximum(last, 0)], -1), np.int64)


def _paired(placed: pl.DataFrame) -> pl.DataFrame:
    """Each allocation with its free: the next event at the same address of the same device."""
    line = placed.select(*KEY, "bytes").with_row_index("row").sort(*KEY, "row")
    follows = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in KEY)
    freed = line.filter(
        ((pl.col("bytes") > 0) & follows & (pl.col("bytes").shift(-1) < 0)).fill_null(value=False)
    )
    following = line.select("row", free=pl.col("row").shift(-1))
    frees = freed.select("row").join(following, on="row")
    columns = placed[frees["free"].to_numpy()].select(
        frees["row"],
        freed_event="event",
        freed_ns="ts_ns",
        freed_step="step",
        freed_outermost="outermost",
        freed_phase="phase",
    )
    return placed.with_row_index("row").join(columns, on="row", how="left", maintain_order="left").drop("row")


def _categorised(paired: pl.DataFrame) -> pl.DataFrame:
    made, freed = pl.col("phase").fill_null(""), pl.col("freed_phase").fill_null("")
    is_freed = pl.col("freed_event").is_not_null()
    return (
        paired.with_columns(
            is_temporary=(is_freed & (pl.col("outermost") == pl.col("freed_outermost"))).fill_null(
                value=False
            ),
            is_churn=is_freed & pl.col("step").eq_missing(pl.col("freed_step")),
        )
        .with_columns(
            category=pl.when(pl.col("bytes") <= 0)
            .then(None)
            .when("is_temporary")
            .then(pl.lit("temporary"))
            .when((made == "forward") & (freed == "backward"))
            .then(pl.lit("activation"))
            .when(pl.col("accumulates") | ((made == "backward") & (freed == "zero_grad")))
            .then(pl.lit("gradient"))
            .when((made == "optimizer") & ~is_freed & pl.col("addr").is_not_null())
            .then(pl.lit("optimizer_state"))
            .when(made.is_in(["data", "h2d"]))
            .then(pl.lit("input"))
            .otherwise(pl.lit("other"))
        )
        .drop("freed_outermost", "freed_phase", "accumulates", "phase")
    )
