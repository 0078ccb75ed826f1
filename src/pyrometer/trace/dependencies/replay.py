"""Running time through the graph: forwards with changed durations, backwards for slack, and back along what held up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyrometer.native import compiled
from pyrometer.trace.dependencies.graph import Edge, Graph
from pyrometer.trace.rows import IntArray

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Durations:
    """What a replay runs with: the durations of a graph, changed or not."""

    dur: IntArray  # per node
    weight: IntArray  # (2, nodes)
    lag: IntArray  # per node


def recorded(graph: Graph) -> Durations:
    """The durations of the record."""
    return Durations(graph.dur, graph.weight, graph.lag)


class Plan(NamedTuple):
    """What a replay need not find out again: points that only follow their thread move with the last one that does not."""

    kept: IntArray  # nodes that are computed one by one; all others stand at a distance from one of these
    sources: IntArray  # (2, kept): of the kept nodes, as indices of `kept`
    before: IntArray  # (2, kept): the same as nodes, before they were moved to the last kept one
    points: IntArray  # nodes that are points, in order of thread and time
    follows: BoolArray  # of these, the ones that are not kept
    leader_of: IntArray  # per node: the kept node that it moves with, as an index of `kept`
    rank: IntArray  # per node: its place in `points`; behind the last of them for device work
    first: IntArray  # per node: the place in `points` of the node that it moves with


def plan(graph: Graph) -> Plan:
    """Find what a replay must compute one by one; the compiled module is as fast with all nodes."""
    number = len(graph)
    points = np.flatnonzero((graph.point >= 0) & ~graph.is_pass)
    points = points[np.argsort(graph.point[points], kind="stable")]
    follows = (graph.kind[0, points] == Edge.PROGRAM) & (graph.kind[1, points] == Edge.PROGRAM)
    rank = np.full(number, len(points), np.int64)
    rank[points] = np.arange(len(points))
    leader = np.maximum.accumulate(np.where(follows, -1, np.arange(len(points))))
    stays = np.ones(number, bool)
    stays[points[follows]] = False
    kept = np.flatnonzero(stays)
    index = np.cumsum(stays) - 1
    leader_of, first = index.copy(), rank.copy()
    leader_of[points] = index[points[leader]]
    first[points] = leader
    before = graph.source[:, kept]
    return Plan(kept, leader_of[before], before, points, follows, leader_of, rank, first)


def replay(graph: Graph, durations: Durations) -> IntArray:
    """When each node ends, if it begins as soon as all that it waits for allows. Linear in the number of nodes.

    With the recorded durations it gives the recorded times.
    """
    stay = durations.lag + durations.dur
    if compiled() is not None:
        return _ends(graph.low, graph.source, durations.weight, stay)
    steps = _plan_of(graph)
    passed = np.where(steps.follows, durations.weight[0, steps.points] + stay[steps.points], 0)
    along = np.append(np.cumsum(passed), 0)
    offset = along[steps.rank] - along[steps.first]
    weight = durations.weight[:, steps.kept] + offset[steps.before]
    ends = _ends(graph.low, steps.sources, weight, stay[steps.kept])
    return np.asarray(ends[steps.leader_of] + offset, np.int64)


def _ends(low: int, source: IntArray, weight: IntArray, stay: IntArray) -> IntArray:
    """When each node ends, one after the other; the first one ends at `low`."""
    fast = compiled()
    if fast is not None:
        found = np.empty(len(stay), np.int64)
        fast.replay(low, *_plain(source[0], weight[0], source[1], weight[1], stay), found)
        return found
    ends = [low]
    add = ends.append
    one, other = source[:, 1:].tolist()
    for u, w, v, x, more in zip(
        one, weight[0, 1:].tolist(), other, weight[1, 1:].tolist(), stay[1:].tolist(), strict=True
    ):
        a, b = ends[u] + w, ends[v] + x
        add((a if a > b else b) + more)  # noqa: FURB136 - max() would double the time of this loop
    return np.array(ends, np.int64)


def _plain(*arrays: IntArray) -> list[IntArray]:
    """The arrays as the compiled module and views of memory take them."""
    return [np.ascontiguousarray(array, np.int64) for array in arrays]


def _plan_of(graph: Graph) -> Plan:
    if "plan" not in graph.kept:
        graph.kept["plan"] = plan(graph)
    found: Plan = graph.kept["plan"]
    return found


def span_of(graph: Graph, ends: IntArray) -> int:
    """Length of the replayed span, ns."""
    return int(ends[graph.ends].max()) - graph.low if len(graph.ends) else 0


def slack(graph: Graph) -> IntArray:
    """For each node how much later it could end without making the span longer, ns; 0 on the critical path.

    Nothing may end later than the span, also what nothing waits for.
    """
    stay = graph.lag + graph.dur
    return _latest(graph, stay) - (graph.time + graph.dur)


def _latest(graph: Graph, stay: IntArray) -> IntArray:
    fast = compiled()
    if fast is not None:
        found = np.full(len(graph), graph.high, np.int64)
        source, weight = graph.source, graph.weight
        fast.slack(*_plain(source[0], weight[0], source[1], weight[1], stay), found)
        return found
    latest = [graph.high] * len(graph)
    columns = (graph.source[0], graph.weight[0], graph.source[1], graph.weight[1], stay)
    rows = zip(*(column[:0:-1].tolist() for column in columns), strict=True)
    for i, (u, w, v, x, more) in zip(range(len(graph) - 1, 0, -1), rows, strict=True):
        begin = latest[i] - more
        if begin - w < latest[u]:  # noqa: PLR1730 - as above
            latest[u] = begin - w
        if begin - x < latest[v]:  # noqa: PLR1730
            latest[v] = begin - x
    return np.array(latest, np.int64)


WORK, LAG = -1, -2


class Pieces(NamedTuple):
    """Pieces of the critical path, the last first; they cover the span without gap or overlap."""

    start: IntArray
    stop: IntArray
    node: IntArray  # the node that this piece led to, or was
    kind: IntArray  # `Edge` that was followed; `WORK` for the node itself, `LAG` for what nothing explains


def critical_pieces(graph: Graph) -> Pieces:
    """Walk back from the end of the span: at each node to that which it had to wait for longest."""
    source, kind = _binding(graph)
    ends = (graph.time + graph.dur)[graph.ends]
    last = graph.ends[ends == ends.max(initial=graph.low)]
    node = int(last[-1]) if len(last) else 0
    before, walk = source.data, []  # the walk sees few of the rows
    while node:
        walk.append(node)
        node = before[node]
    path = np.array(walk, np.int64)
    begin, lag = graph.time[path], graph.lag[path]
    reached = (graph.time + graph.dur)[source[path]]
    own = np.where(graph.dur[path] > 0, begin, graph.high)  # a point takes no time of its own
    cursor = np.minimum.accumulate(np.append(graph.high, np.minimum(own, reached)))[:-1]
    worked = np.minimum(cursor, own)
    explained = np.where(lag > 0, np.clip(worked - lag, reached, worked), worked)
    bounds = np.stack([cursor, worked, explained, np.minimum(explained, reached)])
    kinds = np.stack([np.full(len(path), WORK), np.full(len(path), LAG), kind[path]])
    start, stop = bounds[1:].T.ravel(), bounds[:-1].T.ravel()
    held = start < stop
    return Pieces(start[held], stop[held], np.repeat(path, 3)[held], kinds.T.ravel()[held])


def _binding(graph: Graph) -> tuple[IntArray, IntArray]:
    """Of each node the source that it waits for longest, and the kind of that edge.

    A pass hands on the edge that held it up, so that the path knows why it went there.
    """
    ends = graph.time + graph.dur
    passed = np.flatnonzero(graph.is_pass)
    rows = zip(
        passed.tolist(), graph.source[:, passed].T.tolist(), graph.weight[:, passed].T.tolist(), strict=True
    )
    for node, (u, v), (w, x) in rows:  # in order: a pass may wait for a pass
        ends[node] = max(ends[u] + w, ends[v] + x)
    which = (ends[graph.source] + graph.weight).argmax(axis=0)
    nodes, passes = np.arange(len(graph)), int(Edge.PASS)
    source, kind = graph.source[which, nodes], graph.kind[which, nodes]
    for node in passed.tolist():
        if kind[node] == passes:
            source[node], kind[node] = source[source[node]], kind[source[node]]
    behind = np.flatnonzero((kind == Edge.PASS) & ~graph.is_pass)
    source[behind], kind[behind] = source[source[behind]], kind[source[behind]]
    return source, kind
