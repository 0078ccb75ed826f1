"""The critical path: the chain of work and waiting that the length of the run is made of."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.place import Place
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.dependencies.graph import Edge, Graph, dependencies
from pyrometer.trace.dependencies.path import class_sums, outermost_loading, path_pieces, path_walk
from pyrometer.trace.dependencies.replay import LAG, slack
from pyrometer.trace.naming.frames import without_ours
from pyrometer.trace.program.where import place_of, places_of, where
from pyrometer.trace.records.gains import CriticalPath, OpSlack, PathOp, PathSegment, StepPath
from pyrometer.trace.rows import ranges, row_numbers
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace

TOP = 20
LONGEST = 200
"""The record holds the longest segments; `critical_path_segments` holds all."""

RESOURCES = {
    "compute": "compute",
    "communication": "communication",
    "memcpy": "copies",
    "memset": "copies",
    "launch": "launch",
    "sync": "host",
    "runtime": "host",
    "data": "data",
    "host_op": "host",
    "python": "host",
    "untraced": "host",
    "idle": "idle",
}
"""What the classes of the path are put together as, to say what most of it is."""

NAMELESS = {"untraced": "(nothing recorded)", "idle": "(idle)"}


@analysis("critical_path_segments")
def critical_path_segments(trace: RankTrace) -> pl.DataFrame:
    """Every stretch of the critical path in order of time; together they are the span, without gap or overlap."""
    return path_pieces(trace)


@analysis("critical_path")
def critical_path(trace: RankTrace, *, top: int = TOP) -> CriticalPath:
    """What the length of the run is made of: from its end back, at each point what had to finish last.

    Args:
        trace: one rank.
        top: how many entries the lists of operators have at most.
    """
    pieces = path_pieces(trace).with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    pieces = pieces.with_columns(without_ours(pieces["name"]))
    graph, walk = dependencies(trace), path_walk(trace)
    total = trace.activity.span_ns
    code = pieces["class"].to_physical().to_numpy()
    by_class = class_sums(code, pieces["ns"].to_numpy())
    return CriticalPath(
        total_ns=total,
        mostly=_mostly(by_class),
        by_class=by_class,
        by_op=_by_op(trace, pieces, total, top),
        by_step=_by_step(trace, pieces),
        segments=_longest(pieces),
        num_segments=pieces.height,
        slack=_slack(trace, graph, top),
        lag_ns=int((walk.stop - walk.start)[walk.kind == LAG].sum()),
        loading=_loading(trace, pieces),
        notes=list(graph.notes),
    )


def _loading(trace: RankTrace, pieces: pl.DataFrame) -> Place:
    """Of the functions that run within a loader the one that takes most of its time; who waits for a loader is none of them."""
    loads = pieces.filter(pl.col("class") == "data", pl.col("event").is_not_null())
    rows, depth = row_numbers(loads["event"]), row_numbers(trace.events["depth"])
    frame, loader = trace.places.frame[rows], outermost_loading(trace)[rows]
    loads = loads.filter(pl.Series((frame >= 0) & (depth[frame] >= depth[loader])))
    function = ("file", "line", "function")
    spent = (
        places_of(trace, loads["event"])
        .select(*function, ns=loads["ns"])
        .group_by(*function)
        .agg(pl.col("ns").sum())
        .sort("ns", *function, descending=[True, False, False, False])
    )
    return place_of(spent.row(0, named=True)) if spent.height else Place()


def _mostly(by_class: dict[str, int]) -> str:
    sums: dict[str, int] = {}
    for name, ns in by_class.items():
        sums[RESOURCES[name]] = sums.get(RESOURCES[name], 0) + ns
    word = max(sums, key=lambda one: sums[one])
    return word if sums[word] else "none"


def _by_op(trace: RankTrace, pieces: pl.DataFrame, total: int, top: int) -> list[PathOp]:
    groups = (
        pieces.group_by("class", "name")
        .agg(
            pl.col("ns").sum().alias("sum"),
            pl.len().alias("num"),
            pl.col("event").get(pl.col("ns").arg_max()),
        )
        .sort("sum", "name", "class", descending=[True, False, False])
        .head(top)
    )
    return [
        PathOp(
            name=row["name"] or NAMELESS.get(row["class"], ""),
            class_name=row["class"],
            ns=row["sum"],
            share=row["sum"] / total if total else 0.0,
            num=row["num"],
            where=Place() if row["event"] is None else where(trace, row["event"]),
        )
        for row in groups.iter_rows(named=True)
    ]


def _by_step(trace: RankTrace, pieces: pl.DataFrame) -> list[StepPath]:
    start, end = pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy()
    code = pieces["class"].to_physical().to_numpy()
    paths = []
    for name, low, high in step_windows(trace).select("name", "start_ns", "end_ns").iter_rows():
        first, stop = np.searchsorted(end, low, side="right"), np.searchsorted(start, high, side="left")
        inside = np.minimum(end[first:stop], high) - np.maximum(start[first:stop], low)
        by_class = class_sums(code[first:stop], inside)
        total = sum(by_class.values())
        paths.append(StepPath(name=name, total_ns=total, mostly=_mostly(by_class), by_class=by_class))
    return paths


def _longest(pieces: pl.DataFrame) -> list[PathSegment]:
    held = pieces.top_k(LONGEST, by="ns").sort("start_ns")
    return [
        PathSegment(
            start_ns=row["start_ns"],
            end_ns=row["end_ns"],
            class_name=row["class"],
            name=row["name"] or NAMELESS.get(row["class"], ""),
            event=row["event"],
        )
        for row in held.iter_rows(named=True)
    ]


def _slack(trace: RankTrace, graph: Graph, top: int) -> list[OpSlack]:
    left = slack(graph)
    works = np.flatnonzero((graph.work >= 0) & ~graph.is_pass)
    at_point = np.zeros(len(graph.points.time), np.int64)
    holds = np.flatnonzero(graph.point >= 0)
    holds = holds[~graph.is_pass[holds] & (graph.kind[0, holds] == Edge.PROGRAM)]
    at_point[graph.point[holds]] = left[holds]
    segments = graph.points.segments
    count = np.maximum(graph.points.stop - graph.points.first, 0)
    which, index = ranges(graph.points.first, count)
    own = (graph.points.waiting[which] < 0) & (segments.event[index] >= 0)
    which, index = which[own], index[own]
    device = graph.device
    rows = pl.DataFrame(
        {
            "event": np.concatenate([segments.event[index], device.event[graph.work[works]]]).astype(
                np.uint32
            ),
            "ns": np.concatenate([segments.end[index] - segments.start[index], graph.dur[works]]),
            "slack": np.concatenate([at_point[which], left[works]]),
            "is_device": np.append(np.zeros(len(index), bool), np.ones(len(works), bool)),
        }
    )
    ops = (
        rows.with_columns(name=trace.events["name"].gather(rows["event"]))
        .group_by("name", "is_device")
        .agg(
            pl.col("ns").sum(),
            pl.col("ns").filter(pl.col("slack") <= 0).sum().alias("critical"),
            pl.col("slack").min().alias("least"),
            pl.col("slack").median().cast(pl.Int64).alias("median"),
            pl.col("event").n_unique().alias("num"),
        )
        .sort(pl.col("ns") - pl.col("critical"), "name", descending=[True, False])
        .filter(pl.col("ns") > pl.col("critical"))
        .head(top)
    )
    return [
        OpSlack(
            name=row["name"],
            is_device=row["is_device"],
            ns=row["ns"],
            critical_ns=row["critical"],
            least_slack_ns=row["least"],
            median_slack_ns=row["median"],
            num=row["num"],
        )
        for row in ops.iter_rows(named=True)
    ]
