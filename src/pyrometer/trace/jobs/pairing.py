"""Backends that run on the host do so on worker threads: pairing each run with the operator that queued it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl

from pyrometer.trace.jobs.semantics import canonical
from pyrometer.trace.trace import RankTrace


def pair_workers(trace: RankTrace, units: pl.DataFrame, runs_on_host: str) -> pl.DataFrame:
    """Give runs on worker threads their operator and launch, and take the operators' own rows away.

    Nothing in the trace ties the two together. A queue is first in, first out, so each run, in order of start, takes the
    earliest operator of its kind that began before it and is still free; a reduce-scatter, which gloo builds from
    all-reduces, serves as many of them as its group has ranks. A run with no such operator was queued before the
    recording began.

    Args:
        trace: the rank's trace.
        units: host units, with `unit, at, op, launch, start_ns, end_ns`.
        runs_on_host: names of the annotations that last as long as the collective.
    """
    names = trace.events["name"].gather(pl.Series(np.maximum(units["at"].to_numpy(), 0)))
    is_run = (names.str.contains(runs_on_host) & (units["at"] >= 0)).to_numpy()
    if not is_run.any():
        return units
    at, op = units["at"].to_numpy(), units["op"].to_numpy().copy()
    starts, ends = trace.events["start_ns"].to_numpy(), trace.events["end_ns"].to_numpy()
    launch = units["launch"].to_numpy().copy()
    runs = sorted((int(i) for i in np.flatnonzero(is_run & (op < 0))), key=lambda i: starts[at[i]])
    queued = [int(i) for i in np.flatnonzero(~is_run & (op >= 0) & units["kernel"].is_null().to_numpy())]
    found = _first_in_first_out(trace, [int(at[i]) for i in runs], [int(at[i]) for i in queued])
    for run, place in zip(runs, found, strict=True):
        if place is None:
            launch[run] = -1  # a worker thread launches nothing: what queued the run is not in the trace
        else:
            op[run] = at[queued[place]]
            launch[run] = launch[queued[place]]
    taken = {queued[place] for place in found if place is not None}
    kept = np.array([i not in taken for i in range(units.height)], bool)
    rows = np.maximum(at, 0)
    return units.with_columns(
        op=pl.Series(op),
        launch=pl.Series(launch),
        start_ns=_where(is_run, starts[rows], units["start_ns"]),
        end_ns=_where(is_run, ends[rows], units["end_ns"]),
    ).filter(pl.Series(kept))


def _first_in_first_out(trace: RankTrace, runs: list[int], queued: list[int]) -> list[int | None]:
    """For each run, as a row of `events`, the place in `queued` of its operator."""
    names, starts = trace.events["name"], trace.events["start_ns"].to_numpy()
    waiting: dict[str, list[list[Any]]] = defaultdict(list)
    times = trace.info.world_size or 2
    for place, row in sorted(enumerate(queued), key=lambda pair: starts[pair[1]]):
        name = canonical(names[row]) or "other"
        waiting[name].append([place, row, 1])
        if name == "reduce_scatter":
            waiting["all_reduce"].append([place, row, times])
    found: list[int | None] = []
    for row in runs:
        line = waiting[canonical(names[row]) or "other"]
        if not line or starts[line[0][1]] > starts[row]:
            found.append(None)
            continue
        found.append(line[0][0])
        line[0][2] -= 1
        if line[0][2] <= 0:
            line.pop(0)
    return found


def _where(mask: Any, chosen: Any, otherwise: pl.Series) -> pl.Series:
    rows: pl.Series = pl.Series(chosen).zip_with(pl.Series(mask), otherwise.cast(pl.Int64))
    return rows
