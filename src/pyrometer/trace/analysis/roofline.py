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
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from pyrometer.hardware.datasheet import DatasheetPeaks, lookup
from pyrometer.hardware.peaks import Peaks
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.costs.registry import formula_of
from pyrometer.trace.kernel_names import read_name
from pyrometer.trace.op_costs import OpCosts, op_costs
from pyrometer.trace.patterns import is_communication, is_host_communication
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.where import places_of

AnyPeaks: TypeAlias = Peaks | DatasheetPeaks

DEVICE_FLOOR_NS = 2_000
"""What a smallest kernel takes on a GPU, where it was not measured."""

HOST_FLOOR_NS = 2_000
"""What a smallest operator takes on a CPU, where it was not measured."""

FIXED_COSTS = 5
"""Up to this multiple of a smallest operation's time its fixed costs may explain a call that had little to do."""

UNLINKED = "the work names no operator"

TRANSFER = r"(?i)htod|dtoh|host ?to ?device|device ?to ?host"


class Roof(NamedTuple):
    """The ceilings of one device."""

    source: str
    matrix: dict[str, float]  # FLOP/s by dtype
    vector: float | None  # FLOP/s outside of matrix units
    bandwidth: float  # bytes/s
    floor_ns: float


class Uncovered(Record, frozen=True, kw_only=True):
    """Time that no formula covers."""

    op: str
    time_ns: int
    share: Annotated[float, doc("of all time")]
    reason: str


class StepUtilisation(Record, frozen=True, kw_only=True):
    """What a device did in one step."""

    step: Annotated[int, doc("row of the steps")]
    name: str
    wall_ns: int
    flop: Annotated[int, doc("of all operators with a formula that were launched in it")]
    num_bytes: Bytes
    mfu: float | None = None
    bandwidth_utilisation: float | None = None


class Utilisation(Record, frozen=True, kw_only=True):
    """What the device was used for, as a whole."""

    span_ns: int
    time_ns: Annotated[int, doc("device work; in a trace without it operators, each its own time")]
    covered_ns: Annotated[int, doc("of this the time of operators with a formula")]
    overhead_ns: Annotated[
        int, doc("views, allocations and wrappers: host time that no formula could cover")
    ] = 0
    communication_ns: int = 0
    transfer_ns: Annotated[int, doc("copies between host and device")] = 0
    unlinked_ns: Annotated[
        int, doc("device work that names no operator: graphs, or launches missing from the trace")
    ] = 0
    covered_share: Annotated[
        float | None, doc("covered over all but communication, transfers and overhead")
    ] = None
    flop: int
    matrix_flop: Annotated[int, doc("of matrix products, convolutions and attention")]
    num_bytes: Annotated[Bytes, doc("the least that the covered operators must move")]
    flop_per_s: Annotated[float | None, doc("over the span")] = None
    bytes_per_s: Annotated[float | None, doc("over the span")] = None
    mfu: Annotated[
        float | None,
        doc(
            "time that the matrix FLOP would take at their dtypes' peaks, over the span; a lower bound where formulas do not cover all, and recomputed FLOP count"
        ),
    ] = None
    bandwidth_utilisation: Annotated[float | None, doc("bytes at full bandwidth over the span")] = None
    peaks_source: str | None = None
    steps: list[StepUtilisation] = []
    uncovered: Annotated[list[Uncovered], doc("largest first")] = []


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
    return _finish(trace, costs, grouped, _roof(trace, peaks))


@analysis("utilisation")
def utilisation(trace: RankTrace, *, peaks: AnyPeaks | None = None) -> Utilisation:
    """FLOP and bytes of the whole trace and of each step, MFU, and how much of the time the formulas cover."""
    frame = roofline(trace, peaks=peaks) if peaks is not None else roofline(trace)
    costs = op_costs(trace)
    roof = _roof(trace, peaks) if frame["num_bytes"].count() else None  # nothing known is not zero use
    total = int(frame["time_ns"].sum())
    of = {key: int(value) for key, value in frame.group_by("bound").agg(pl.col("time_ns").sum()).iter_rows()}
    covered = int(frame.filter(pl.col("num_bytes").is_not_null())["time_ns"].sum())
    free = int(frame.filter(pl.col("num_bytes").is_null() & (pl.col("bound") == "overhead"))["time_ns"].sum())
    rest = total - of.get("communication", 0) - of.get("transfer", 0) - free
    span = trace.activity.span_ns
    flop, num_bytes = int(frame["flop"].sum()), int(frame["num_bytes"].sum())
    missing = frame.filter((pl.col("bound") == "unknown") & pl.col("num_bytes").is_null())
    missing = missing.group_by("op", "reason").agg(pl.col("time_ns").sum())
    return Utilisation(
        span_ns=span,
        time_ns=total,
        covered_ns=covered,
        overhead_ns=free,
        communication_ns=of.get("communication", 0),
        transfer_ns=of.get("transfer", 0),
        unlinked_ns=int(frame.filter(pl.col("reason") == UNLINKED)["time_ns"].sum()),
        covered_share=covered / rest if rest > 0 else None,
        flop=flop,
        matrix_flop=int(frame.filter(pl.col("unit") == "matrix")["flop"].sum()),
        num_bytes=num_bytes,
        flop_per_s=flop * 1e9 / span if span and covered else None,
        bytes_per_s=num_bytes * 1e9 / span if span and covered else None,
        mfu=float(frame["peak_ns"].sum()) / span if roof and span else None,
        bandwidth_utilisation=num_bytes * 1e9 / roof.bandwidth / span if roof and span else None,
        peaks_source=roof.source if roof else None,
        steps=_steps(trace, costs, frame, roof),
        uncovered=[
            Uncovered(op=op or "(no operator)", time_ns=ns, share=ns / total, reason=reason or "")
            for op, reason, ns in missing.sort("time_ns", descending=True).head(20).iter_rows()
        ],
    )


def _calls(trace: RankTrace, costs: OpCosts) -> pl.DataFrame:
    """One row per piece of work: whose call it is, and what is known of that."""
    events = trace.events
    work = events[costs.work]
    owner = costs.owner[costs.work]
    op = work["op"].cast(pl.Int64).fill_null(-1).to_numpy()
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
    communicates = is_communication() if costs.has_device else is_host_communication()
    parents = _has_counted_below(trace, costs)
    return rows.select(
        bound=pl.when(communicates.fill_null(value=False))
        .then(pl.lit("communication"))
        .when((pl.col("kind") == "memcpy") & pl.col("name").str.contains(TRANSFER).fill_null(value=False))
        .then(pl.lit("transfer"))
        .when("owned")
        .then(pl.lit("formula"))
        .when((not costs.has_device) & (pl.Series(parents[rows["call"].to_numpy()]) | _is_free()))
        .then(pl.lit("overhead"))
        .otherwise(pl.lit("unknown"))
    ).to_series()


def _is_free() -> pl.Expr:
    return pl.col("reason").str.starts_with("a view").fill_null(value=False)


def _has_counted_below(trace: RankTrace, costs: OpCosts) -> np.ndarray:
    """Operators that have one with a formula somewhere below: their own time is dispatch."""
    found = np.zeros(len(costs.kindred), dtype=bool)
    parent = trace.events["parent"].cast(pl.Int64).fill_null(-1).to_numpy()
    rows = np.unique(costs.owner[costs.owner >= 0])
    while len(rows):
        rows = np.unique(parent[rows])
        rows = rows[rows >= 0]
        rows = rows[~found[rows]]
        found[rows] = True
    return found


def _finish(trace: RankTrace, costs: OpCosts, grouped: pl.DataFrame, roof: Roof | None) -> pl.DataFrame:
    figures = [_figures(costs, row, roof) for row in grouped.iter_rows(named=True)]
    table = pl.DataFrame(figures, schema=_FIGURES, orient="row")
    places = places_of(trace, grouped["example"]) if grouped.height else _NO_PLACES
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
                places.select("file", "line", "module", "phase"),
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
    "file", "line", "module", "phase",
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

_NO_PLACES = pl.DataFrame(
    schema={"file": pl.String, "line": pl.Int64, "module": pl.String, "phase": pl.String}
)


def _rate(column: str) -> pl.Expr:
    return pl.when(pl.col("time_ns") > 0).then(pl.col(column) * 1e9 / pl.col("time_ns"))


def _figures(costs: OpCosts, row: dict[str, object], roof: Roof | None) -> tuple[object, ...]:
    """One group's figures, in the order of `_FIGURES`."""
    one = costs.kindreds[int(row["kindred"])] if row["bound"] == "formula" else None  # type: ignore[call-overload]
    cost = one.cost if one is not None else None
    if one is None or cost is None:
        return (None, None, None, None, row["bound"], None, None, None, None, None)
    calls, time = int(row["calls"]), int(row["time_ns"])  # type: ignore[call-overload]
    arithmetic = "tf32" if cost.dtype == "float32" and int(row["tf32_ns"]) * 2 > time else cost.dtype  # type: ignore[call-overload]
    formula = formula_of(one.name)
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


def _roof(trace: RankTrace, peaks: AnyPeaks | None) -> Roof | None:
    """The ceilings: those given, or the vendor's for the first device of the trace."""
    if peaks is None:
        device = next(iter(trace.info.devices), None)
        peaks = lookup(device.name, device.num_sms) if device is not None else None
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


def _steps(trace: RankTrace, costs: OpCosts, frame: pl.DataFrame, roof: Roof | None) -> list[StepUtilisation]:
    """FLOP and bytes by the step that launched them."""
    owners = np.unique(costs.owner[costs.owner >= 0])
    if not trace.steps.height or not len(owners):
        return []
    step = trace.events["step"].cast(pl.Int64).fill_null(-1).to_numpy()[owners]
    kindred = costs.kindred[owners]
    flop = np.array([one.cost.flop if one.cost else 0 for one in costs.kindreds])
    moved = np.array([one.cost.num_bytes if one.cost else 0 for one in costs.kindreds])
    peak_ns = _peak_ns(costs, frame, roof)
    found = []
    for row in trace.steps.iter_rows(named=True):
        here = kindred[step == row["step"]]
        wall = row["end_ns"] - row["start_ns"]
        num_bytes = int(moved[here].sum())
        found.append(
            StepUtilisation(
                step=row["step"],
                name=row["name"],
                wall_ns=wall,
                flop=int(flop[here].sum()),
                num_bytes=num_bytes,
                mfu=float(peak_ns[here].sum()) / wall if roof and wall else None,
                bandwidth_utilisation=num_bytes * 1e9 / roof.bandwidth / wall if roof and wall else None,
            )
        )
    return found


def _peak_ns(costs: OpCosts, frame: pl.DataFrame, roof: Roof | None) -> np.ndarray:
    """What one call of each kind takes at the peak of its arithmetic."""
    tf32 = set(frame.filter(pl.col("arithmetic") == "tf32").select("op", "shapes").iter_rows())
    found = np.zeros(len(costs.kindreds))
    for i, one in enumerate(costs.kindreds):
        if roof is not None and one.cost is not None and one.cost.unit == "matrix":
            dtype = "tf32" if (one.name, one.dims) in tf32 else one.cost.dtype
            found[i] = one.cost.flop * 1e9 / roof.matrix[dtype] if dtype in roof.matrix else 0.0
    return found
