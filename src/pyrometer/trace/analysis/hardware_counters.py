"""Counters of the hardware per operator, from the ranges of CUPTI's profiler (`cuda_profiler_range`).

Kineto wrote such a range for every kernel, with its counters, where it was configured for them; their times are made up (the
whole recording divided by their number), and no kernels are recorded beside them. What ties them to operators is their order: the
n-th range of a device is its n-th launch. Where ranges and launches are not as many, operators are not known.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import CALLS, Kind, is_kind
from pyrometer.trace.naming.kernel_names import shorten
from pyrometer.trace.records.rates import FLOP_OF, OperatorCounters
from pyrometer.trace.rows import row_numbers
from pyrometer.trace.trace import RankTrace

LAUNCH = r"^(cuda|hip)(Ext)?(Module)?Launch(Cooperative)?Kernel|^cu(da)?Launch(Cooperative)?Kernel"
"""Calls that launch one kernel each."""


@analysis("hardware_counters")
def hardware_counters(trace: RankTrace) -> list[OperatorCounters]:
    """Counters that CUPTI's profiler wrote, by operator and kernel, the most work first; empty for other traces."""
    ranges = trace.of_kind(Kind.PROFILER_RANGE).join(
        trace.tables["extras"], on="event", how="inner", maintain_order="left"
    )
    if not ranges.height:
        return []
    grouped: dict[tuple[str | None, str], list[dict[str, float]]] = {}
    for name, op, args in zip(ranges["name"], _operators(trace, ranges), ranges["args"], strict=True):
        grouped.setdefault((op, shorten(name)), []).append(_metrics(args))
    found = [_summary(op, kernel, counters) for (op, kernel), counters in grouped.items()]
    return sorted(found, key=lambda row: (-(row.flop or 0.0), -sum(row.counters.values()), row.kernel))


def _operators(trace: RankTrace, ranges: pl.DataFrame) -> list[str | None]:
    """The operator of each range, by the order of launches."""
    launches = trace.events.filter(is_kind(*CALLS) & pl.col("name").str.contains(LAUNCH)).sort("start_ns")
    if launches.height != ranges.height:
        return [None] * ranges.height
    ops = row_numbers(launches["op"])
    names = trace.events["name"].gather(np.maximum(ops, 0))
    return [name if op >= 0 else None for name, op in zip(names.to_list(), ops.tolist(), strict=True)]


def _metrics(args: str) -> dict[str, float]:
    """Numbers among the arguments that are counters, which all have a unit before two underscores."""
    return {
        key: float(value)
        for key, value in json.loads(args).items()
        if "__" in key and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _summary(op: str | None, kernel: str, counters: list[dict[str, float]]) -> OperatorCounters:
    names = sorted({name for values in counters for name in values})
    totals = {name: sum(values.get(name, 0.0) for values in counters) for name in names}
    arithmetic = [FLOP_OF[name] * totals[name] for name in names if name in FLOP_OF]
    shown = {
        name: total if name.endswith(".sum") else total / len(counters) for name, total in totals.items()
    }
    return OperatorCounters(
        op=op,
        kernel=kernel,
        calls=len(counters),
        flop=sum(arithmetic) if arithmetic else None,
        counters=shown,
    )
