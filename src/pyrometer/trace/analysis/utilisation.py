"""What a device was used for as a whole: FLOP and bytes over the span, and how much of the time the formulas cover."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.analysis.roofline import UNLINKED, AnyPeaks, Roof, roof_of, roofline
from pyrometer.trace.costs.op_costs import OpCosts, op_costs
from pyrometer.trace.rows import distinct, row_numbers
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace


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


@analysis("utilisation")
def utilisation(trace: RankTrace, *, peaks: AnyPeaks | None = None) -> Utilisation:
    """FLOP and bytes of the whole trace and of each step, MFU, and how much of the time the formulas cover."""
    frame = roofline(trace, peaks=peaks) if peaks is not None else roofline(trace)
    costs = op_costs(trace)
    roof = roof_of(trace, peaks) if frame["num_bytes"].count() else None  # nothing known is not zero use
    total = int(frame["time_ns"].sum())
    of = {key: int(value) for key, value in frame.group_by("bound").agg(pl.col("time_ns").sum()).iter_rows()}
    covered = int(frame.filter(pl.col("num_bytes").is_not_null())["time_ns"].sum())
    free = int(frame.filter(pl.col("num_bytes").is_null() & (pl.col("bound") == "overhead"))["time_ns"].sum())
    rest = total - of.get("communication", 0) - of.get("transfer", 0) - free
    span = trace.activity.span_ns
    flop, num_bytes = int(frame["flop"].sum()), int(frame["num_bytes"].sum())
    missing = frame.filter((pl.col("bound") == "unknown") & pl.col("num_bytes").is_null())
    missing = missing.group_by("op", "reason").agg(pl.col("time_ns").sum())
    missing = missing.sort("time_ns", "op", "reason", descending=[True, False, False])
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
            Uncovered(op=op or "(no operator)", time_ns=ns, share=ns / max(total, 1), reason=reason or "")
            for op, reason, ns in missing.head(20).iter_rows()
        ],
    )


def _steps(trace: RankTrace, costs: OpCosts, frame: pl.DataFrame, roof: Roof | None) -> list[StepUtilisation]:
    """FLOP and bytes by the step that launched them."""
    owners = distinct(costs.owner[costs.owner >= 0])
    if not trace.steps.height or not len(owners):
        return []
    step = row_numbers(trace.events["step"])[owners]
    kindred = costs.kindred[owners]
    flop = np.array([one.cost.flop if one.cost else 0 for one in costs.kindreds])
    moved = np.array([one.cost.num_bytes if one.cost else 0 for one in costs.kindreds])
    peak_ns = _peak_ns(costs, frame, roof)
    steps = []
    for row in step_windows(trace).iter_rows(named=True):
        here = kindred[step == row["step"]]
        wall = row["end_ns"] - row["start_ns"]
        num_bytes = int(moved[here].sum())
        steps.append(
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
    return steps


def _peak_ns(costs: OpCosts, frame: pl.DataFrame, roof: Roof | None) -> npt.NDArray[np.float64]:
    """What one call of each kind takes at the peak of its arithmetic."""
    tf32 = set(frame.filter(pl.col("arithmetic") == "tf32").select("op", "shapes").iter_rows())
    peak_ns = np.zeros(len(costs.kindreds))
    for i, kindred in enumerate(costs.kindreds):
        if roof is not None and kindred.cost is not None and kindred.cost.unit == "matrix":
            dtype = "tf32" if (kindred.name, kindred.dims) in tf32 else kindred.cost.dtype
            peak_ns[i] = kindred.cost.flop * 1e9 / roof.matrix[dtype] if dtype in roof.matrix else 0.0
    return peak_ns
