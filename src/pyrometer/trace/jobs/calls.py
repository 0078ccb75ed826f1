"""The collectives of one rank, one row per call: what it moved, when it ran, who called it, and what hid it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.jobs.facts import CALLS, describe
from pyrometer.trace.jobs.pairing import pair_workers
from pyrometer.trace.jobs.semantics import canonical
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.naming.patterns import BACKEND, HOST_BACKEND, MAY_WAIT, is_communication
from pyrometer.trace.program.rollup import holds
from pyrometer.trace.rows import IntArray, each_once
from pyrometer.trace.schema import dtypes
from pyrometer.trace.timing.intervals import Intervals, covered, union
from pyrometer.trace.trace import RankTrace


@analysis("collective_calls")
def collective_calls(trace: RankTrace) -> pl.DataFrame:
    """Every collective that the rank called or ran, in order of start; see `CALLS` for the columns.

    A call is the backend's annotation (`nccl:all_reduce`), else `record_param_comms`, else the `c10d` operator, and the
    kernels that were launched beneath it; a kernel with no such launch (as in a replayed graph) is a call of its own.
    On the CPU a call runs where gloo's worker thread shows it, and is paired with the operator that queued it.
    """
    units = _find_units(trace)
    if not units.height:
        return pl.DataFrame(schema=dtypes(CALLS))
    units = describe(trace, units)
    units = units.with_columns(exposed_ns=_exposed(trace, units))
    return (
        units.sort(pl.coalesce("start_ns", "launch_ns"), "event")
        .select(pl.col(name).cast(column.dtype) for name, column in CALLS.items())
        .rechunk()
    )


def computing(trace: RankTrace, device: int | None) -> Intervals:
    """When a device computes: kernels that are no communication; without device work, operators that are not waiting.

    A device of None means the host, or all devices together where there are any.
    """
    return trace.results.once(f"computing on {device}", lambda: _computing(trace, device))


def _computing(trace: RankTrace, device: int | None) -> Intervals:
    if device is None and trace.activity.has_device:
        return trace.activity.compute
    if device is None:
        waiting = pl.col("name").str.contains(MAY_WAIT)
        work = trace.named(is_kind(Kind.CPU_OP) & ~waiting.fill_null(value=False))
    else:
        work = trace.named(is_kind(Kind.KERNEL) & ~is_communication().fill_null(value=False))
        work = work.filter(pl.col("device").fill_null(-1) == device)
    return union(work["start_ns"].to_numpy(), work["end_ns"].to_numpy())


def _find_units(trace: RankTrace) -> pl.DataFrame:
    """One row per call: `event, unit, args, op, launch, start_ns, end_ns, num_kernels, device, kernel`; -1 for none."""
    events = trace.events
    op = is_kind(Kind.CPU_OP)
    tables = {
        "backend": trace.named(is_kind(Kind.USER_ANNOTATION) & pl.col("name").str.contains(BACKEND)),
        "params": trace.named(op & (pl.col("name") == "record_param_comms")),
        "op": trace.named(op & is_communication()),
        "kernel": trace.named(is_kind(Kind.KERNEL) & is_communication()),
    }
    if not any(part.height for part in tables.values()):
        return pl.DataFrame()
    mask = {}
    for kind, part in tables.items():
        mask[kind] = np.zeros(events.height, bool)
        mask[kind][part["event"].to_numpy()] = True
    names = events["name"]
    for kind in ("backend", "op"):
        rows = np.flatnonzero(mask[kind])
        mask[kind][rows] = [canonical(name) is not None for name in names.gather(rows)]
    named = dict(zip(*trace.tables["collectives"].select("event", "collective"), strict=True))
    rows = np.flatnonzero(mask["params"])
    told = np.array([int(row) in named and canonical(named[int(row)]) is not None for row in rows], bool)
    above = {kind: trace.nearest(mask[kind]) for kind in ("backend", "params", "op")}
    unit = mask["backend"].copy()
    unit[rows[told & ~holds(trace, unit)[rows]]] = True
    inner = np.flatnonzero(mask["op"] & ~holds(trace, unit | mask["op"]))
    unit[inner] = True
    return _gather(trace, unit, mask["kernel"], above)


def _gather(
    trace: RankTrace,
    unit: npt.NDArray[np.bool_],
    kernel: npt.NDArray[np.bool_],
    above: Mapping[str, IntArray],
) -> pl.DataFrame:
    """Bring host units and kernels together."""
    events = trace.events
    owner = trace.nearest(unit)
    work = np.flatnonzero(kernel)
    kernels = events[work].select(
        unit=pl.Series(owner[work]),
        kernel=pl.col("event").cast(pl.Int64),
        s="start_ns",
        e="end_ns",
        device="device",
    )
    key = pl.when(pl.col("unit") < 0).then(-1 - pl.col("kernel")).otherwise(pl.col("unit"))
    runs = kernels.group_by(key.alias("unit"), maintain_order=True).agg(
        pl.col("kernel").first(),
        pl.col("s").min().alias("start_ns"),
        pl.col("e").max().alias("end_ns"),
        pl.col("device").first(),
        pl.len().cast(pl.Int64).alias("num_kernels"),
    )
    hosts = pl.DataFrame({"unit": np.flatnonzero(unit).astype(np.int64)})
    rows = hosts.join(runs, on="unit", how="full", coalesce=True)
    at = np.maximum(rows["unit"].to_numpy(), -1)
    rows = rows.with_columns(
        at=pl.Series(at),
        args=pl.Series(np.where(at >= 0, above["params"][at], -1)),
        op=pl.Series(np.where(at >= 0, above["op"][at], -1)),
        num_kernels=pl.col("num_kernels").fill_null(0),
    )
    return pair_workers(
        trace, rows.with_columns(launch=pl.Series(_outermost(trace, at, above))), HOST_BACKEND
    )


def _outermost(trace: RankTrace, rows: IntArray, above: Mapping[str, IntArray]) -> IntArray:
    """The outermost communication event on the host at or above each row; -1 for -1."""
    parent = trace.parent
    found: IntArray = rows.copy()
    for _ in range(8):  # deeper nesting of communication operators is not seen
        up = np.where(found >= 0, parent[found], -1)
        higher = np.maximum.reduce([np.where(up >= 0, near[up], -1) for near in above.values()])
        if not (higher >= 0).any():
            break
        found = np.asarray(np.where(higher >= 0, higher, found), np.int64)
    return found


def _exposed(trace: RankTrace, units: pl.DataFrame) -> pl.Series:
    exposed = np.zeros(units.height, np.int64)
    timed = units["dur_ns"].is_not_null().to_numpy()
    devices = units["device"].fill_null(-1).to_numpy()
    for device in each_once(devices[timed]).tolist():
        rows = np.flatnonzero(timed & (devices == device))
        low, high = units["start_ns"].gather(rows).to_numpy(), units["end_ns"].gather(rows).to_numpy()
        busy = computing(trace, device if device >= 0 else None)
        exposed[rows] = high - low - covered(busy, low, high)
    return pl.Series(exposed).set(pl.Series(~timed), None)
