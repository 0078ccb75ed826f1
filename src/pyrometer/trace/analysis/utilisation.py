"""What a device was used for as a whole: FLOP and bytes over the span, and how much of the time the formulas cover."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.analysis.roofline import UNLINKED, AnyPeaks, Roof, roof_of, roofline
from pyrometer.trace.costs.op_costs import OpCosts, op_costs
from pyrometer.trace.records.rates import StepUtilisation, Uncovered, Utilisation
from pyrometer.trace.rows import distinct, row_numbers
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace


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
