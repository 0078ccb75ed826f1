"""What could be won, and where: the changes with the largest predicted gain, none of them counted twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.place import Place
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.analysis.updates import updates_by_tensor
from pyrometer.trace.analysis.what_if import bases, replayed_span, touched
from pyrometer.trace.dependencies.changes import Scales, unchanged
from pyrometer.trace.dependencies.graph import Graph, dependencies
from pyrometer.trace.dependencies.path import CLASS, CLASSES, path_pieces
from pyrometer.trace.dependencies.select import scales_of, waits_for_others
from pyrometer.trace.program.rollup import codes
from pyrometer.trace.program.where import where
from pyrometer.trace.records.gains import Recoverable
from pyrometer.trace.rows import IntArray, among, numbered
from pyrometer.trace.trace import RankTrace

TOP = 10
PER_KIND = 6
"""How many kernels, operators, lines, … are tried."""
TRIED = 24
"""How many changes are replayed at most, those with the largest bound first."""
WORTH = 0.002
"""A gain below this share of the span is left out."""
SHARED = 0.5
"""A change that adds less than this share of its gain to those before it, and of which they shorten as much, is the same gain under another name."""
ADDS = 0.1
"""Of its gain what a change must add that shortens other work than those before it."""

OWN = "its own part twice as fast: what runs directly within it, and the device work of that"
NOTHING = -1


@dataclass(frozen=True)
class Candidate:
    """A change to be tried."""

    kind: str
    name: str
    what: str
    speedup: float | None
    critical_ns: int
    event: int | None  # the longest occurrence
    scales: Callable[[], Scales]

    @property
    def bound_ns(self) -> int:
        """No replay can gain more than this: the old path, shortened, is still a path."""
        return self.critical_ns if self.speedup is None else int(self.critical_ns * (1 - 1 / self.speedup))


@analysis("recoverable")
def largest_gains(trace: RankTrace, *, top: int = TOP) -> list[Recoverable]:
    """The changes that would shorten the run most, by replay, largest first.

    Tried are: every group of waiting calls as if nobody waited; data loading, copies, communication, other runtime
    calls and launch overhead as if free; the kernels, and the own parts of operators and of
    source lines (of modules, where the trace has no stacks), that lie longest on the critical path, as if twice as
    fast; updates tensor by tensor as if of all tensors at once. Host time in which nothing was recorded is not tried: nobody knows what it was. A change whose gain and work are mostly contained in those above it is left out; see `added_ns`.

    Args:
        trace: one rank.
        top: how many at most.
    """
    graph, base = dependencies(trace), bases(trace)
    if not base[0]:
        return []
    least = WORTH * base[0]
    found: list[tuple[int, Candidate]] = []
    for candidate in sorted(candidates(trace, graph), key=lambda c: -c.bound_ns)[:TRIED]:
        best = sorted((gain for gain, _ in found), reverse=True)[: 2 * top]
        if candidate.bound_ns < max(least, best[-1] if len(best) == 2 * top else 0):
            break
        gain = base[0] - replayed_span(graph, candidate.scales())
        if gain >= least:
            found.append((gain, candidate))
    found.sort(key=lambda entry: (-entry[0], entry[1].name))
    return list(_distinct(trace, graph, base, found, top))


def _distinct(
    trace: RankTrace, graph: Graph, base: tuple[int, int], found: list[tuple[int, Candidate]], top: int
) -> Iterator[Recoverable]:
    joint, reached, given = unchanged(trace.events.height), base[0], 0
    for gain, candidate in found:
        if given == top:
            return
        scales = candidate.scales()
        both = joint.least(scales)
        span = replayed_span(graph, both)
        added = reached - span
        if added < ADDS * gain or (added < SHARED * gain and _is_contained(graph, scales, joint)):
            continue
        ratio = 1 - gain / base[0]
        bare = replayed_span(graph, scales, lags=False) / base[1] if base[1] else ratio
        yield Recoverable(
            name=candidate.name,
            what=candidate.what,
            kind=candidate.kind,
            speedup=candidate.speedup,
            gain_ns=gain,
            added_ns=added,
            critical_ns=candidate.critical_ns,
            ratio=ratio,
            ratio_low=min(ratio, bare),
            ratio_high=max(ratio, bare),
            where=Place() if candidate.event is None else where(trace, candidate.event),
        )
        joint, reached, given = both, span, given + 1


def _is_contained(graph: Graph, scales: Scales, joint: Scales) -> bool:
    """Whether most of what a change shortens is shortened by others already."""
    common = Scales(np.maximum(scales.event, joint.event), gap=max(scales.gap, joint.gap))
    return touched(graph, common) >= SHARED * touched(graph, scales)


def candidates(trace: RankTrace, graph: Graph) -> Iterator[Candidate]:
    """All changes that are worth trying."""
    pieces = path_pieces(trace).with_columns(
        pl.col("class").cast(pl.String),
        ns=pl.col("end_ns") - pl.col("start_ns"),
        event=pl.col("event").cast(pl.Int64).fill_null(NOTHING),
    )
    path = _Pieces(
        pieces["event"].to_numpy(),
        pieces["ns"].to_numpy(),
        pieces["class"].cast(CLASS).to_physical().to_numpy(),
    )
    names = _Names(trace)
    own = np.arange(trace.events.height)
    op = trace.events["op"].cast(pl.Int64).fill_null(NOTHING).to_numpy()
    frame, module = trace.places.frame, trace.places.module
    yield from _by_name(path, "compute", names, own, kind="kernel", speedup=2.0, what="twice as fast")
    yield from _by_name(
        path,
        "memcpy",
        names,
        _copies(graph, own),
        kind="copy",
        speedup=None,
        what="free, or behind other work",
    )
    yield from _by_name(path, "runtime", names, own, kind="call", speedup=None, what="no longer called")
    yield from _by_name(path, None, names, op, kind="op", speedup=2.0, what=OWN)
    if (frame >= 0).any():
        yield from _by_name(path, None, names, frame, kind="line", speedup=2.0, what=OWN)
    else:
        yield from _by_name(path, None, names, module, kind="module", speedup=2.0, what=OWN)
    for group, kind, name, what in (
        ("communication", "collective", "communication", "wholly behind other work"),
        ("data", "data", "data loading", "ready when it is asked for"),
        ("launch", "launch", "launch overhead", "gone, as with all work in one graph"),
    ):
        yield from _whole(trace, pieces.filter(pl.col("class") == group), kind, name, what)
    yield from _waiting_groups(trace, graph)
    yield from _updates(trace, pieces)


def _updates(trace: RankTrace, pieces: pl.DataFrame) -> Iterator[Candidate]:
    what = "of all tensors at once, twice as fast: fused=True, or foreach=True"
    for update in updates_by_tensor(trace):
        on_path = int(pieces.filter(pl.col("event").is_in(pl.Series(update.within).implode()))["ns"].sum())

        def scales(within: IntArray = update.within) -> Scales:
            share = np.ones(trace.events.height)
            share[within] = 0.5
            return Scales(share)

        yield Candidate("update", update.optimizer, what, 2.0, on_path, update.longest, scales)


def _copies(graph: Graph, own: IntArray) -> IntArray:
    """For each copy itself, and for each call that waits for its own copy that copy; -1 for all other events."""
    device, owner = graph.device, np.full(len(own), NOTHING, np.int64)
    owner[device.event[device.is_copy]] = device.event[device.is_copy]
    waited = device.is_copy & among(device.call, graph.waits.event)
    owner[device.call[waited]] = device.event[waited]
    return owner


class _Pieces(NamedTuple):
    """Pieces of the critical path."""

    event: IntArray
    ns: IntArray
    kind: IntArray  # index of `CLASSES`


class _Names:
    """Names of events as numbers, so that all events of a name are found at once."""

    def __init__(self, trace: RankTrace) -> None:
        sorts = trace.sorts
        first = np.full(sorts.table.height, len(sorts.code), np.int64)  # event of each sort
        first[sorts.code[::-1]] = np.arange(len(sorts.code))[::-1]
        table = sorts.table.select("name", first=pl.Series(first)).with_row_index("sort").sort("first")
        table = table.with_columns(code=codes(table.select("name")))
        code = np.empty(table.height, np.int64)
        code[table["sort"].to_numpy()] = table["code"].to_numpy()
        self.codes = code[sorts.code]
        self.text = table["name"].fill_null("").to_list()

    def of(self, rows: IntArray) -> IntArray:
        """Number of the name of each row; -1 for none."""
        return np.where(rows >= 0, self.codes[rows], NOTHING)


def _by_name(
    pieces: _Pieces,
    group: str | None,
    names: _Names,
    owner: IntArray,
    *,
    kind: str,
    speedup: float | None,
    what: str,
) -> Iterator[Candidate]:
    """The names of owners that lie longest on the path, within one class of it; an owner is given per event."""
    code = names.of(owner)
    there = pieces.event >= 0
    if group is not None:
        there &= pieces.kind == CLASSES.index(group)
    event, ns = pieces.event[there], pieces.ns[there]
    on_path = code[event]
    event, ns, on_path = event[on_path >= 0], ns[on_path >= 0], on_path[on_path >= 0]
    numbers, which = numbered(on_path)
    sums = np.zeros(len(numbers), np.int64)
    np.add.at(sums, which, ns)
    for place in np.lexsort((numbers, -sums))[:PER_KIND].tolist():
        number, mine = int(numbers[place]), np.flatnonzero(which == place)

        def scales(number: int = number) -> Scales:
            return Scales(np.where(code == number, 1 / speedup if speedup else 0.0, 1.0))

        longest = int(event[mine[ns[mine].argmax()]])
        yield Candidate(kind, names.text[number], what, speedup, int(sums[place]), longest, scales)


def _whole(trace: RankTrace, part: pl.DataFrame, kind: str, name: str, what: str) -> Iterator[Candidate]:
    if part.height:
        longest = part["event"][int(np.argmax(part["ns"].to_numpy()))]
        event = longest if longest >= 0 else None
        yield Candidate(
            kind, name, what, None, int(part["ns"].sum()), event, lambda: scales_of(trace, kind, None, 0.0)
        )


def _waiting_groups(trace: RankTrace, graph: Graph) -> Iterator[Candidate]:
    """Waiting calls by operator, or by name outside of operators; named after the call that takes longest."""
    calls = trace.events[waits_for_others(trace, graph)].select("event", "name", "dur_ns", "op")
    if not calls.height:
        return
    within = trace.events["name"].gather(calls["op"].cast(pl.UInt32))
    longest = pl.col("dur_ns").arg_max()
    groups = (
        calls.with_columns(within=within)
        .group_by("within", pl.when(pl.col("op").is_null()).then("name").alias("call"))
        .agg(
            pl.col("name").get(longest),
            pl.col("dur_ns").sum().alias("sum"),
            pl.col("event").get(longest).alias("longest"),
            pl.col("event").alias("events"),
        )
        .sort("sum", "name", "within", descending=[True, False, False])
        .head(PER_KIND)
    )
    what = "not waited for: the result is read later or not at all"
    for row in groups.iter_rows(named=True):
        name = row["name"] if row["within"] is None else f"{row['name']} in {row['within']}"
        freed = np.array(row["events"], np.int64)

        def scales(freed: IntArray = freed) -> Scales:
            share = np.ones(trace.events.height)
            share[freed] = 0.0
            return Scales(share, freed=freed)

        yield Candidate("sync", name, what, None, row["sum"], row["longest"], scales)
