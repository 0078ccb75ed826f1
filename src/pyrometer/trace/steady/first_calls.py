"""Calls that take long because they are the first of their sort: contexts, modules and kernels that are loaded, pools that fill.

A call of the runtime or driver counts where no device does anything meanwhile and it takes at least `LONG_NS`, if

- it takes `OUTLIER` times the median of its name, and is no launch, or the first of its name or of the kernel; or
- it sets something up: it neither launches, copies, records nor waits; and such calls come at the start, not in
  at least half of the steps, nor as often in the second half of the launches as in the first.

So do compilation that the profiler saw, and the own time of operators that are called for the first time (`first_operators`).
Of a call its own usual time stays. In a record of fewer than `FEW_STEPS` steps,
calls that set something up throughout may be all of a start, or what each step does: nobody knows, and they stay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.trace.kinds import CALLS, Kind, is_kind
from pyrometer.trace.rows import Mask
from pyrometer.trace.steady.first_operators import first_operators
from pyrometer.trace.steady.left_out import LeftOut, Reason
from pyrometer.trace.timing.intervals import EMPTY, Intervals, clip, covered, length, merge, subtract, union
from pyrometer.trace.trace import RankTrace

LONG_NS = 1_000_000
"""Setting up takes milliseconds; below that nothing is worth leaving out."""

OUTLIER = 50
"""Times the median of its name, from which on a first call is not the usual one."""

FEW_STEPS = 3
"""With fewer steps, what recurs is found in the order of launches."""

LATE = 0.4
"""Share of the calls of a sort after half of the launches, from which on they go on throughout."""

LAUNCHING = r"(?i)launch|memset|record|graphexec"
WAITING = r"(?i)synchronize|memcpy|query|waitevent|waitvalue|profiler|cupti|capture"
COMPILING = r"\(dynamo_timed\)$"


class FirstCalls(NamedTuple):
    """What first calls take beyond what is usual, with one entry per name, the longest first."""

    cut: Intervals
    entries: list[LeftOut]
    undecided: list[LeftOut]  # calls that set something up throughout a record without steps


def first_calls(trace: RankTrace) -> FirstCalls:
    """Find the first calls, and the stretches of time that they take."""
    calls = _calls(trace)
    operators = _chosen(first_operators(trace), "operator")
    slow = pl.concat([_outliers(calls, trace), _set_up(calls), _compilation(trace), operators]).unique(
        ["name", "start_ns"], keep="first", maintain_order=True
    )
    recurs = _recurs(trace, slow, slow.select(pl.struct("name", "sort").rank("dense") - 1).to_series())
    cut, entries = _entries(trace, slow.filter(pl.Series(~recurs)))
    throughout = slow.filter(pl.Series(recurs))
    undecided = [] if trace.steps.height >= FEW_STEPS else _entries(trace, throughout)[1]
    return FirstCalls(cut, entries, undecided)


def _entries(trace: RankTrace, chosen: pl.DataFrame) -> tuple[Intervals, list[LeftOut]]:
    entries, counted = [], EMPTY
    by_name = chosen.sort("dur_ns", descending=True, maintain_order=True).partition_by(
        "name", maintain_order=True
    )
    for rows in by_name:
        mine = subtract(_stretches(trace, rows), counted)
        counted = merge(counted, mine)
        entries.append(_entry(rows, length(mine)))
    return counted, [entry for entry in entries if entry.span_ns]


def _stretches(trace: RankTrace, calls: pl.DataFrame) -> Intervals:
    """What calls take beyond what is usual while no device works, within the span."""
    low = calls["start_ns"].to_numpy() + calls["usual_ns"].fill_null(0).to_numpy()
    activity = trace.activity
    return clip(
        subtract(union(low, calls["end_ns"].to_numpy()), activity.device), activity.start_ns, activity.end_ns
    )


def _entry(rows: pl.DataFrame, span_ns: int) -> LeftOut:
    low, high, longest = rows["start_ns"].min(), rows["end_ns"].max(), rows["dur_ns"].max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    assert isinstance(longest, int)
    return LeftOut(
        reason=rows["reason"][0],
        name=rows["name"][0],
        count=rows["event"].n_unique(),
        start_ns=low,
        end_ns=high,
        span_ns=span_ns,
        longest_ns=longest,
        usual_ns=rows["usual_ns"][0],
    )


def _calls(trace: RankTrace) -> pl.DataFrame:
    """Calls that do not wait, each with the usual duration of its name and how much of it no device works."""
    calls = trace.chosen(trace.of_kind(*CALLS), ~pl.col("name").str.contains(WAITING))
    busy = covered(trace.activity.device, calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    middle = pl.col("dur_ns").sort().get((pl.len() - 1) // 2)  # of two the shorter
    usual = calls.group_by("name").agg(usual_ns=pl.when(pl.len() > 1).then(middle))
    return calls.join(usual, on="name", how="left", maintain_order="left").with_columns(
        alone_ns=pl.col("dur_ns") - pl.Series(busy),
        launches=pl.Series(trace.mask(pl.col("name").str.contains(LAUNCHING))[calls["event"].to_numpy()]),
    )


def _chosen(calls: pl.DataFrame, sort: str, reason: Reason = "first_call") -> pl.DataFrame:
    return calls.select(
        "event",
        "name",
        "start_ns",
        "end_ns",
        "dur_ns",
        "usual_ns",
        "step",
        sort=pl.lit(sort),
        reason=pl.lit(reason),
    )


def _outliers(calls: pl.DataFrame, trace: RankTrace) -> pl.DataFrame:
    work = trace.device_work.select(event=pl.col("parent").cast(pl.UInt32), kernel="name")
    named = calls.join(work.unique("event", keep="first"), on="event", how="left", maintain_order="left")
    is_first = pl.int_range(pl.len()).over("name") == 0
    is_new = pl.col("kernel").is_not_null() & (pl.int_range(pl.len()).over("kernel") == 0)
    slow = (pl.col("alone_ns") >= LONG_NS) & (pl.col("dur_ns") >= OUTLIER * pl.col("usual_ns").clip(1))
    loading = named.with_columns(loads=~pl.col("launches") | is_first | is_new).filter(slow & pl.col("loads"))
    return _chosen(loading, "outlier")


def _set_up(calls: pl.DataFrame) -> pl.DataFrame:
    slow = calls.filter(~pl.col("launches") & (pl.col("alone_ns") >= LONG_NS))
    usual = pl.when(pl.col("usual_ns") < LONG_NS).then("usual_ns")
    return _chosen(slow.with_columns(usual_ns=usual), "set_up")


def _compilation(trace: RankTrace) -> pl.DataFrame:
    """What Dynamo marks as its own: tracing, generating and compiling code."""
    marks = trace.named(is_kind(Kind.USER_ANNOTATION, Kind.CPU_OP) & pl.col("name").str.contains(COMPILING))
    outermost = marks.filter(
        (pl.col("start_ns") >= pl.col("end_ns").cum_max().shift().over("track")).fill_null(value=True)
    )
    long = outermost.filter(pl.col("dur_ns") >= LONG_NS).with_columns(
        usual_ns=pl.lit(None, pl.Int64), name=pl.lit("compilation")
    )
    return _chosen(long, "compilation", "compilation")


def _recurs(trace: RankTrace, slow: pl.DataFrame, sort: pl.Series) -> Mask:
    """Whether each is one of a sort that goes on throughout the record; sorts are numbered from 0."""
    if not slow.height:
        return np.zeros(0, np.bool_)
    steps = trace.steps.height
    if steps >= FEW_STEPS:
        held = slow.select(pl.col("step").drop_nulls().n_unique().over(sort)).to_series()
        return np.asarray((held * 2 >= steps).to_numpy(), np.bool_)
    calls = trace.device_work["parent"].drop_nulls().cast(pl.UInt32)
    launches = np.sort(trace.events["start_ns"].gather(calls).to_numpy())
    late = np.searchsorted(launches, slow["start_ns"].to_numpy()) * 2 >= max(len(launches), 1)
    table = pl.DataFrame({"late": late, "sort": sort})
    going = (pl.col("late").mean() >= LATE) & (pl.len() > FEW_STEPS)
    return np.asarray(table.select(going.over("sort")).to_series().to_numpy(), np.bool_)
