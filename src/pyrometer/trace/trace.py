"""The noun of this room: what ran when, on which thread, stream and rank, as tables of events."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import polars as pl

from pyrometer.errors import InputError
from pyrometer.trace import schema
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.info import RankInfo
from pyrometer.trace.kinds import CALLS, DEVICE_WORK, Kind, kind_mask
from pyrometer.trace.linking.link import Links, link
from pyrometer.trace.linking.nearest import nearest
from pyrometer.trace.linking.places import Places, find_places
from pyrometer.trace.rows import IntArray, Mask, row_numbers
from pyrometer.trace.sorts import Sorts, find_sorts
from pyrometer.trace.timing.activity import Activity, find_activity, find_span

T = TypeVar("T")

OFTEN_ASKED = (frozenset(DEVICE_WORK), frozenset(CALLS))
"""Kinds whose events are kept once they were asked for: most analyses need these, and few the others."""


class Results(dict[str, Any]):
    """What was calculated of a trace, by name: each once, also where two threads ask for it at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._being_made: dict[str, Any] = {}  # locks

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What is kept under a name; made when it is first asked for.

        >>> results = Results()
        >>> [results.once("one", lambda: made) for made in (1, 2)]
        [1, 1]
        """
        if name not in self:
            with self._being_made.setdefault(name, threading.RLock()):
                if name not in self:
                    self[name] = make()
        held: T = self[name]
        return held


@dataclass(frozen=True)
class RankTrace:
    """One rank's trace: its tables, and what the file says about itself.

    The tables are Polars frames, described in `pyrometer.trace.schema`; linking happens when a linked column is first
    asked for.
    """

    info: RankInfo
    tables: Mapping[str, pl.DataFrame]
    results: Results = field(default_factory=Results, repr=False, compare=False)
    window: tuple[int, int] | None = None  # start and end of what counts of the span; none is all
    known_steps: pl.DataFrame | None = field(default=None, repr=False, compare=False)  # found already
    known_links: Links | None = field(default=None, repr=False, compare=False)  # of these events and steps
    known_sorts: Sorts | None = field(default=None, repr=False, compare=False)  # of these events

    def __repr__(self) -> str:
        """Without the tables."""
        return (
            f"RankTrace(rank={self.rank}, num_events={self.tables['events'].height}, path={self.info.path!r})"
        )

    @property
    def rank(self) -> int:
        """Rank of the process that was traced."""
        return self.info.rank

    @cached_property
    def links(self) -> Links:
        """Call tree, launches and steps; counts of what did not fit."""
        return self.known_links or link(self.tables, self.sorts, self.known_steps)

    @cached_property
    def events(self) -> pl.DataFrame:
        """All events with a kind, linked: the columns of `EVENTS` and `LINKS`."""
        return self.tables["events"].hstack(self.links.columns)

    @cached_property
    def parent(self) -> IntArray:
        """The row that encloses or launched each event; -1 for none."""
        has_captured = "captured" in self.tables  # what led to these is not what encloses them
        return row_numbers(self.events["parent"]) if has_captured else self.links.above

    @property
    def steps(self) -> pl.DataFrame:
        """The steps; see `schema.STEPS`."""
        return self.links.steps

    @property
    def tracks(self) -> pl.DataFrame:
        """Threads and streams; see `schema.TRACKS`."""
        return self.tables["tracks"]

    @cached_property
    def activity(self) -> Activity:
        """The span, and when each class of work was active."""
        whole = find_activity(self.tables["events"], self._whole_span, self.sorts)
        return whole if self.window is None else whole.within(*self.window)

    @cached_property
    def span(self) -> tuple[int, int]:
        """Start and end of the span, as `activity` has them."""
        start, end = self._whole_span
        if self.window is None:
            return start, end
        low = min(max(self.window[0], start), end)
        return low, min(max(self.window[1], low), end)

    @cached_property
    def _whole_span(self) -> tuple[int, int]:
        return find_span(self.tables["events"], self.steps, self.sorts)

    @cached_property
    def sorts(self) -> Sorts:
        """Kind, category and name of every event, each combination once."""
        return self.known_sorts or find_sorts(self.tables["events"])

    def are(self, *kinds: Kind | str) -> Mask:
        """Which events are of these kinds."""
        return kind_mask(self.tables["events"]["kind"], *kinds)

    def mask(self, wanted: pl.Expr) -> Mask:
        """Which events fulfil a condition on kind, category and name."""
        return self.sorts.mask(wanted)

    @cached_property
    def places(self) -> Places:
        """User frame, module, phase and forward operator of every event."""
        return find_places(self.events, self.tables["ops"], self.links.above, self.sorts)

    def nearest(self, wanted: Mask) -> IntArray:
        """For each event the innermost wanted one at or above it in the call tree, as a row; -1 where there is none.

        Above the work of a graph lie the operators recorded when it was captured, where these were joined to the trace.
        """
        return nearest(self.links.above, wanted)

    def of_kind(self, *kinds: Kind | str) -> pl.DataFrame:
        """The linked events of some kinds, in order of start: `of_kind(Kind.KERNEL)` or `of_kind("kernel")`."""
        wanted = frozenset(map(Kind, kinds))
        often = next((kept for kept in OFTEN_ASKED if wanted <= kept), None)
        if often is None:  # each such frame takes up to a tenth of the trace's memory
            return self.events.filter(pl.Series(self.are(*kinds)))
        if often not in self._by_kind:
            self._by_kind[often] = self.events.filter(pl.Series(self.are(*often)))
        held = self._by_kind[often]
        return held if wanted == often else held.filter(pl.Series(kind_mask(held["kind"], *kinds)))

    def named(self, wanted: pl.Expr) -> pl.DataFrame:
        """The linked events that fulfil a condition on kind, category and name, which is asked once per sort of event."""
        return self.events.filter(pl.Series(self.mask(wanted)))

    def chosen(self, rows: pl.DataFrame, wanted: pl.Expr) -> pl.DataFrame:
        """Of some events, numbered in the column `event`, those that fulfil a condition on kind, category and name.

        It is asked once per sort of event, where `filter` asks it for each.
        """
        return rows.filter(pl.Series(self.mask(wanted)[rows["event"].to_numpy()]))

    def bounds_of(self, *kinds: Kind | str) -> pl.DataFrame:
        """Name, track, start and end of the events of some kinds, not linked and not kept: for kinds that most events are of."""
        columns = self.tables["events"].select("name", "track", "start_ns", "end_ns")
        return columns.filter(pl.Series(self.are(*kinds)))

    def number_of(self, *kinds: Kind | str) -> int:
        """How many events are of these kinds."""
        return int(self.are(*kinds).sum())

    @cached_property
    def _by_kind(self) -> dict[frozenset[Kind], pl.DataFrame]:
        return {}

    @property
    def device_work(self) -> pl.DataFrame:
        """The linked kernels, copies and fills, in order of start."""
        return self.of_kind(*DEVICE_WORK)

    def detail(self, table: str) -> pl.DataFrame:
        """A table of arguments joined to its events: `ops`, `python`, `kernels`, `copies`, `syncs`, `memory`, `collectives`."""
        return self.events.join(self.tables[table], on="event", how="inner", maintain_order="left")


def kept(function: Callable[[RankTrace], T]) -> Callable[[RankTrace], T]:
    """Decorate a function of one rank's trace: what it gives is kept with the trace, and calculated once."""

    @functools.wraps(function)
    def found(trace: RankTrace) -> T:
        return trace.results.once(f"{function.__module__}.{function.__qualname__}", lambda: function(trace))

    return found


@dataclass(frozen=True)
class Trace:
    """A trace of one rank or of several ranks of the same job."""

    ranks: tuple[RankTrace, ...]
    results: Results = field(default_factory=Results, repr=False, compare=False)  # of analyses
    capture: Capture | None = None  # how it was recorded, where we did that

    @property
    def events(self) -> pl.DataFrame:
        """The events of all ranks; `event`, `parent`, `op` and `step` count within their rank."""
        return self._all(lambda one: one.events)

    @property
    def steps(self) -> pl.DataFrame:
        """The steps of all ranks."""
        return self._all(lambda one: one.steps)

    def sql(self, query: str) -> pl.DataFrame:
        """Answer one SELECT over all ranks; the views are `pyrometer.trace.sql.VIEWS`.

        >>> Trace(()).sql("select count(*) as number from kernels")["number"].to_list()
        [0]

        Raises:
            InputError: not a SELECT, an unknown view or column, or a mistake in the query.
        """
        from pyrometer.trace.sql import trace_sql

        return trace_sql(self, query)

    def rank(self, rank: int | None = None) -> RankTrace:
        """One rank's trace; with one rank only, that one.

        Raises:
            InputError: the rank is not there, or there are several and none is named.
        """
        held = [trace.rank for trace in self.ranks]
        if rank is None and len(held) == 1:
            return self.ranks[0]
        if rank not in held:
            text = "no rank was named" if rank is None else f"rank {rank} is not in this trace"
            raise InputError(f"{text}; it holds {', '.join(map(str, held))}; pass rank=")
        return self.ranks[held.index(rank)]

    def _all(self, frame: Any) -> pl.DataFrame:
        return pl.concat([frame(rank) for rank in self.ranks]) if self.ranks else schema.empty(schema.EVENTS)
