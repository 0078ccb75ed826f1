"""The call tree merged by path: calls with the same ancestors by kind and name are one node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from pyrometer.trace.kinds import DEVICE_WORK, HOST, Kind, is_kind
from pyrometer.trace.linking.tree import depth_of
from pyrometer.trace.naming.frames import frame_kinds
from pyrometer.trace.naming.patterns import is_step_mark
from pyrometer.trace.program.paths import merge_paths
from pyrometer.trace.program.rollup import codes, gather_into, roll_up
from pyrometer.trace.rows import IntArray, Mask, positions
from pyrometer.trace.trace import RankTrace, kept

ALL = "(all)"
ORPHANS = "(device work without a launch)"


@dataclass(frozen=True)
class Merged:
    """Nodes, the ones above before the ones below; node 0 is the root, and below it are the threads."""

    parent: IntArray  # -1 at the root
    depth: IntArray  # 0 at the root
    name: pl.Series
    kind: pl.Series  # of the events; `trace` and `thread` for nodes that are no events
    calls: IntArray  # events that were merged
    self_ns: IntArray  # host time in which nothing nested runs
    device_self_ns: IntArray  # duration of device work: only its own nodes have any

    @cached_property
    def total_ns(self) -> IntArray:
        """Host time at or below each node."""
        return roll_up(self.self_ns, self.parent, self.depth)

    @cached_property
    def device_ns(self) -> IntArray:
        """Device work at or below each node."""
        return roll_up(self.device_self_ns, self.parent, self.depth)


@kept
def merged(trace: RankTrace) -> Merged:
    """Merge the call tree of all threads: thread → Python → module → operator → runtime call → kernel.

    Host time at or below a node is the sum of what is its own and its children's, to the nanosecond. Numbers of steps
    and addresses of objects are cut from the names, so that steps merge. A function that opens a span stands beside it: it
    did not run within. Functions of our own, which run the user's steps, are no nodes: their time belongs to what is above them.
    """
    events = trace.events
    of_host = (*HOST, Kind.CAPTURED)
    host, device = (np.flatnonzero(trace.are(*kinds)) for kinds in (of_host, DEVICE_WORK))
    ours, above = _ours(trace)
    rows = np.concatenate([host[~ours[host]], device])
    labels, code = _labels(trace, rows)
    label = np.zeros(events.height, np.int64)
    label[rows] = code
    tops, top_of = _tops(trace, host, device)
    paths = merge_paths(rows, label, above, top_of, first=1 + len(tops))
    node = paths.of_event
    hidden = host[ours[host]]
    node[hidden] = np.where(above[hidden] >= 0, node[above[hidden]], top_of[hidden])
    parent = np.concatenate([[-1], np.zeros(len(tops), np.int64), paths.parent])
    first = pl.DataFrame({"name": [ALL, *tops], "kind": ["trace", *["thread"] * len(tops)]})
    table = pl.concat([first, labels[paths.label]])
    nothing = np.zeros(table.height, np.int64)
    return Merged(
        parent=parent,
        depth=depth_of(parent),
        name=table["name"],
        kind=table["kind"],
        calls=gather_into(nothing.copy(), node[rows], np.ones(len(rows), np.int64)),
        self_ns=gather_into(nothing.copy(), node[host], events["self_ns"].to_numpy()[host]),
        device_self_ns=gather_into(nothing.copy(), node[device], events["dur_ns"].to_numpy()[device]),
    )


def _ours(trace: RankTrace) -> tuple[Mask, IntArray]:
    """Which events are functions of our own, and what else is above each event."""
    events, above = trace.events, trace.links.above.copy()
    functions = events.select("event", "kind", "name").filter(is_kind(Kind.PYTHON_FUNCTION))
    kinds = frame_kinds(functions["name"]).filter(pl.col("is_ours"))
    ours = np.zeros(events.height, bool)
    ours[functions.join(kinds, on="name", how="semi")["event"].to_numpy()] = True
    while (under := np.flatnonzero((above >= 0) & ours[above])).size:
        above[under] = above[above[under]]
    return ours, above


def _labels(trace: RankTrace, rows: IntArray) -> tuple[pl.DataFrame, IntArray]:
    """The distinct pairs of name and kind in the order in which the rows first have them, and which of them each row has."""
    sorts = trace.sorts
    cut = sorts.table.select(
        name=pl.when(is_step_mark())
        .then(pl.lit("ProfilerStep"))
        .otherwise(pl.col("name").str.replace(r" at 0x[0-9a-fA-F]+", ""))
        .fill_null("(unnamed)"),
        kind=pl.col("kind").cast(pl.String),
    )
    label = codes(cut)[sorts.code[rows]]
    first = np.full(cut.height, len(rows))
    first[label[::-1]] = np.arange(len(rows))[::-1]
    held = np.argsort(first, kind="stable")[: int((first < len(rows)).sum())]
    return cut[held], positions(held, cut.height)[label]


def _tops(trace: RankTrace, host: IntArray, device: IntArray) -> tuple[list[str], IntArray]:
    """The nodes below the root, and which of them stands above each event that has no parent."""
    tracks = trace.tracks.select(
        "track",
        name=pl.coalesce("thread_name", pl.format("thread {}", "tid"), pl.lit("thread")),
    )
    here = trace.events["track"]
    used = here.gather(pl.Series(host, dtype=pl.UInt32)).unique(maintain_order=True).to_frame()
    names = (
        used.join(tracks, on="track", how="left", maintain_order="left")["name"].fill_null("thread").to_list()
    )
    place = np.zeros(int(here.to_numpy().max(initial=0)) + 1, np.int64)
    place[used["track"].to_numpy()] = np.arange(1, len(names) + 1)
    top_of = place[here.to_numpy()]
    orphans = device[trace.parent[device] < 0]
    if len(orphans):
        names.append(ORPHANS)
        top_of[orphans] = len(names)
    return names, top_of
