"""How far operators are from what the device allows: FLOP and bytes by formula, time by measurement.

FLOP and bytes follow `pyrometer.trace.costs`: a multiply-add counts 2, bytes are the least that must move. The model is
that of `pyrometer.hardware.roofline`: at best an operator takes the longer of `flop / peak` and `bytes / bandwidth`, and
`share_of_roof` is that over the time that it took. It exceeds 1 where data stayed in a cache, or an algorithm needs less
arithmetic than the definition.

`bound` says which of the two is longer (`compute`, `memory`); `overhead` where even the longer one is below the cost
of a smallest operation and the call took less than five times that, so that fixed costs decide; for the rest `communication` (between ranks), `transfer` (between host
and device, which is not the device's memory), `unknown`.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl

from pyrometer.hardware.datasheet import lookup
from pyrometer.hardware.peaks import DatasheetPeaks, Peaks
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.costs.movement import FREE
from pyrometer.trace.costs.op_costs import OpCosts, op_costs
from pyrometer.trace.costs.registry import formula_of
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.naming.copy_names import between_host_and_device
from pyrometer.trace.naming.kernel_names import read_name
from pyrometer.trace.naming.patterns import is_communication, is_host_communication
from pyrometer.trace.program.rollup import holds
from pyrometer.trace.program.where import places_of
from pyrometer.trace.rows import row_numbers
from pyrometer.trace.trace import RankTrace

AnyPeaks: TypeAlias = Peaks | DatasheetPeaks

DEVICE_FLOOR_NS = 2_000
"""What a smallest kernel takes on a GPU, where it was not measured."""

HOST_FLOOR_NS = 2_000
"""What a smallest operator takes on a CPU, where it was not measured."""

FIXED_COSTS = 5
"""Up to this multiple of a smallest operation's time its fixed costs may explain a call that had little to do."""

UNLINKED = "the work names no operator"


class Roof(NamedTuple):
    """The ceilings of one device."""

    source: str
    matrix: dict[str, float]  # FLOP/s by dtype
    vector: float | None  # FLOP/s outside of matrix units
    bandwidth: float  # bytes/s
    floor_ns: float


@analysis("roofline")
def roofline(trace: RankTrace, *, peaks: AnyPeaks | None = None) -> pl.DataFrame:
    """Achieved rates and share of the roof, per operator with shapes and dtypes; the times sum to all device work.

    In a trace without device work the times are the operators' own on the host.

    Args:
        trace: one rank's trace.
        peaks: measured, or the vendor's; without, the vendor's figures for the device that the trace names, and
            without these rates only.
    """
    costs = op_costs(trace)
    calls = _calls(trace, costs)
    grouped = (
        calls.group_by("op", "shapes", "dtypes", "flop", "num_bytes", "bound")
        .agg(
            pl.len().alias("events"),
            pl.col("call").n_unique().alias("calls"),
            pl.col("time_ns").sum(),
            (pl.col("time_ns") * pl.col("tf32")).sum().alias("tf32_ns"),
            pl.col("call").sort_by("time_ns").last().alias("example"),
            pl.col("kindred").first(),
            pl.col("reason").first(),
        )
        .sort("time_ns", "op", "shapes", descending=[True, False, False], nulls_last=True)
    )
    return _finish(trace, costs, grouped, roof_of(trace, peaks))


def _calls(trace: RankTrace, costs: OpCosts) -> pl.DataFrame:
    """One row per piece of work: whose call it is, and what is known of that."""
    events = trace.events
    work = events.select("op", "name", "kind")[costs.work]
    owner = costs.owner[costs.work]
    op = row_numbers(work["op"])
    call = np.where(owner >= 0, owner, np.where(op >= 0, op, costs.work))
    kindred = costs.kindred[call]
    known = pl.DataFrame(
        {
            "kindred": np.arange(-1, len(costs.kindreds)),
            "shapes": [None, *(_compact(one.dims) for one in costs.kindreds)],
            "dtypes": [None, *(_compact(one.types) for one in costs.kindreds)],
            "has_cost": [False, *(one.cost is not None for one in costs.kindreds)],
            "reason": [None, *(one.reason for one in costs.kindreds)],
            "flop": [None, *(one.cost.flop if one.cost else None for one in costs.kindreds)],
            "num_bytes": [None, *(one.cost.num_bytes if one.cost else None for one in costs.kindreds)],
        },
        schema_overrides={
            "shapes": pl.String,
            "dtypes": pl.String,
            "reason": pl.String,
            "flop": pl.Int64,
            "num_bytes": pl.Int64,
        },
    )
    names = (
        {name: read_name(name).tf32 for name in work["name"].drop_nulls().unique().to_list()}
        if costs.has_device
        else {}
    )
    rows = pl.DataFrame(
        {
            "call": call,
            "owned": owner >= 0,
            "kindred": kindred,
            "time_ns": costs.time,
            "name": work["name"],
            "kind": work["kind"],
            "op": events["name"].gather(call),
        }
    ).join(known, on="kindred", how="left", maintain_order="left")
    return rows.with_columns(
        tf32=pl.col("name").replace_strict(names, default=False, return_dtype=pl.Boolean),
        bound=_class(rows, trace, costs),
        reason=pl.when("owned").then(None).otherwise(_reason()),
    )


def _compact(text: str | None) -> str | None:
    """Without the line breaks that some files have between a list's elements."""
    return re.sub(r"\s+", "", text) if text else text


def _reason() -> pl.Expr:
    return (
        pl.when(pl.col("kindred") < 0)
        .then(pl.lit(UNLINKED))
        .when("has_cost")
        .then(pl.lit("the operator's own time; its formula counts below it"))
        .otherwise("reason")
    )


def _class(rows: pl.DataFrame, trace: RankTrace, costs: OpCosts) -> pl.Series:
    """What is no operator's work on the device; `unknown` is for the formulas to decide."""
    communicates, transfers = (
        trace.mask(wanted)[costs.work]
        for wanted in (
            is_communication() if costs.has_device else is_host_communication(),
            is_kind(Kind.MEMCPY) & between_host_and_device(),
        )
    )
    counted = np.zeros(len(costs.kindred), np.bool_)
    counted[costs.owner[costs.owner >= 0]] = True
    is_wrapper = pl.Series(holds(trace, counted)[rows["call"].to_numpy()])  # its own time is dispatch
    return rows.select(
        bound=pl.when(pl.Series(communicates))
        .then(pl.lit("communication"))
        .when(pl.Series(transfers))
        .then(pl.lit("transfer"))
        .when("owned")
        .then(pl.lit("formula"))
        .when(pl.lit(not costs.has_device) & (pl.col("op").is_in(sorted(FREE)) | pl.lit(is_wrapper)))
        .then(pl.lit("overhead"))
        .otherwise(pl.lit("unknown"))
    ).to_series()


def _finish(trace: RankTrace, costs: OpCosts, grouped: pl.DataFrame, roof: Roof | None) -> pl.DataFrame:
    figures = [_figures(costs, row, roof) for row in grouped.iter_rows(named=True)]
    table = pl.DataFrame(figures, schema=_FIGURES, orient="row")
    places = places_of(trace, grouped["example"])
    total = max(int(grouped["time_ns"].sum()), 1)
    return (
        pl.concat(
            [
                grouped.select(
                    "op",
                    "shapes",
                    "dtypes",
                    "calls",
                    "time_ns",
                    pl.col("time_ns").truediv(total).alias("share"),
                ),
                table,
                grouped.select("reason"),
                places.select("file", "line", "function", "module", "phase"),
            ],
            how="horizontal",
        )
        .with_columns(
            _rate("flop").alias("flop_per_s"),
            _rate("num_bytes").alias("bytes_per_s"),
            pl.when(pl.col("num_bytes") > 0).then(pl.col("flop") / pl.col("num_bytes")).alias("intensity"),
        )
        .select(COLUMNS)
    )


COLUMNS = (
    "op", "shapes", "dtypes", "calls", "time_ns", "share", "flop", "num_bytes", "flop_per_s", "bytes_per_s", "intensity",
    "roof_flop_per_s", "share_of_roof", "bound", "unit", "arithmetic", "peak_ns", "source", "assumption", "reason",
    "file", "line", "function", "module", "phase",
)  # fmt: skip
"""Columns of the frame; `flop` and `num_bytes` are of all calls together, `peak_ns` what the matrix FLOP take at the peak."""

_FIGURES: dict[str, type[pl.DataType]] = {
    "flop": pl.Int64,
    "num_bytes": pl.Int64,
    "roof_flop_per_s": pl.Float64,
    "share_of_roof": pl.Float64,
    "bound": pl.String,
    "unit": pl.String,
    "arithmetic": pl.String,
    "peak_ns": pl.Float64,
    "source": pl.String,
    "assumption": pl.String,
}


def _rate(column: str) -> pl.Expr:
    return pl.when(pl.col("time_ns") > 0).then(pl.col(column) * 1e9 / pl.col("time_ns"))


def _figures(costs: OpCosts, row: dict[str, object], roof: Roof | None) -> tuple[object, ...]:
    """One group's figures, in the order of `_FIGURES`."""
    kindred = costs.kindreds[int(row["kindred"])] if row["bound"] == "formula" else None  # type: ignore[call-overload]
    cost = kindred.cost if kindred is not None else None
    if kindred is None or cost is None:
        return (None, None, None, None, row["bound"], None, None, None, None, None)
    calls, time = int(row["calls"]), int(row["time_ns"])  # type: ignore[call-overload]
    arithmetic = "tf32" if cost.dtype == "float32" and int(row["tf32_ns"]) * 2 > time else cost.dtype  # type: ignore[call-overload]
    formula = formula_of(kindred.name)
    flop, num_bytes = calls * cost.flop, calls * cost.num_bytes
    bound, peak_ns, roof_rate, share = "unknown", None, None, None
    if roof is not None:
        peak = roof.matrix.get(arithmetic) if cost.unit == "matrix" else roof.vector
        if peak is not None or not flop:
            compute_ns = flop * 1e9 / peak if peak else 0.0
            memory_ns = num_bytes * 1e9 / roof.bandwidth
            best = max(compute_ns, memory_ns)
            bound = "compute" if compute_ns > memory_ns else "memory"
            tiny = best < calls * roof.floor_ns and time < calls * roof.floor_ns * FIXED_COSTS
            bound = "overhead" if tiny else bound
            share = best / time if time else None
            roof_rate = flop * 1e9 / best if best and flop else None
            peak_ns = compute_ns if cost.unit == "matrix" else None
    source = formula.source if formula else None
    return (flop, num_bytes, roof_rate, share, bound, cost.unit, arithmetic, peak_ns, source, cost.assumption)


def peaks_for(trace: RankTrace, peaks: AnyPeaks | None) -> AnyPeaks | None:
    """The peaks given; without, the vendor's for the first device of the trace, if it is known."""
    device = next(iter(trace.info.devices), None)
    return peaks if peaks is not None or device is None else lookup(device.name, device.num_sms)


def roof_of(trace: RankTrace, peaks: AnyPeaks | None) -> Roof | None:
    """The ceilings: those given, or the vendor's for the first device of the trace."""
    peaks = peaks_for(trace, peaks)
    if peaks is None:
        return None
    if isinstance(peaks, DatasheetPeaks):
        vector = peaks.flop_per_s.get("float32")
        return Roof(peaks.source, dict(peaks.flop_per_s), vector, peaks.memory_bytes_per_s, DEVICE_FLOOR_NS)
    matrix = {dtype: peak.best for dtype, peak in peaks.matmul_flop_per_s.items()}
    for dtype, peak in peaks.conv_flop_per_s.items():
        matrix[dtype] = max(matrix.get(dtype, 0.0), peak.best)
    memory = peaks.copy_bytes_per_s.get("memory")
    if memory is None:
        return None
    on_device = peaks.device != "cpu"
    floor = peaks.cost_s.get("small_kernel" if on_device else "launch")
    floor_ns = floor.best * 1e9 if floor else DEVICE_FLOOR_NS if on_device else HOST_FLOOR_NS
    return Roof(f"measured on {peaks.name}", matrix, matrix.get("float32"), memory.best, floor_ns)
