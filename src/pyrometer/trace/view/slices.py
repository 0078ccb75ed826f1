"""Slices on their lanes, short ones merged when there are too many, with the launches between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from pyrometer.trace.analysis.timeline import timeline
from pyrometer.trace.kinds import CALLS, DEVICE_WORK, HOST, Kind, is_kind
from pyrometer.trace.naming.patterns import is_communication, is_module
from pyrometer.trace.rows import IntArray, mask_of, positions
from pyrometer.trace.timing.placing import place_slices
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.passing import num_above, passing_frames
from pyrometer.trace.view.record import COMMUNICATION, MODULE


@dataclass(frozen=True)
class Slices:
    """Drawn slices in order of track, lane and start; each stands for consecutive rows of `events`."""

    events: (
        pl.DataFrame
    )  # every slice of the trace: event, track (as drawn), lane, start_ns, end_ns, dur_ns, name, kind
    first: IntArray  # the first row that each drawn slice stands for
    num_passing: int = 0  # frames that only pass their call on, and are left out

    @cached_property
    def num_events(self) -> IntArray:
        """How many rows each drawn slice stands for."""
        return np.diff(np.append(self.first, self.events.height))

    @cached_property
    def start_ns(self) -> IntArray:
        """Start on the clock of the file."""
        return self._column("start_ns")[self.first]

    @cached_property
    def dur_ns(self) -> IntArray:
        """From the first start to the last end, gaps included."""
        if not len(self.first):
            return self.first
        return np.maximum.reduceat(self._column("end_ns"), self.first) - self.start_ns

    @cached_property
    def busy_ns(self) -> IntArray:
        """Sum of the durations of the rows."""
        return np.add.reduceat(self._column("dur_ns"), self.first) if len(self.first) else self.first

    def at_first(self, column: str) -> IntArray:
        """A column of whole numbers, of the first row of each drawn slice."""
        return self._column(column)[self.first]

    def one_of(self, code: IntArray) -> IntArray:
        """The code that all rows of a drawn slice share; -1 where they differ."""
        if not len(self.first):
            return code[:0]
        low, high = np.minimum.reduceat(code, self.first), np.maximum.reduceat(code, self.first)
        return np.where(low == high, low, -1)

    def launches(self, trace: RankTrace) -> tuple[IntArray, IntArray]:
        """Drawn slices of device work, and for each the drawn slice of the call that launched it (the first of merged ones)."""
        place = np.full(trace.events.height + 1, -1, np.int64)
        place[self._column("event")] = np.repeat(np.arange(len(self.first)), self.num_events)
        work = mask_of(trace.events, is_kind(*DEVICE_WORK, Kind.SYNC))
        call = np.append(mask_of(trace.events, is_kind(*CALLS)), values=False)
        event = self.at_first("event")
        parent = trace.parent[event]
        source = np.where(work[event] & call[parent], place[parent], -1)
        drawn = np.flatnonzero(source >= 0)
        return drawn, source[drawn]

    def _column(self, name: str) -> IntArray:
        return self.events[name].to_numpy().astype(np.int64)


def find_slices(trace: RankTrace, order: IntArray, limit: int) -> Slices:
    """Place all slices, and merge the short ones where there are more than the limit.

    Args:
        trace: one rank.
        order: where each track is drawn; -1 for those without slices.
        limit: about how many slices at most; a row per lane always remains.
    """
    placed = place_slices(trace)
    events = (
        placed.select(
            "event",
            pl.Series("track", order[placed["track"].to_numpy()], dtype=pl.Int64),
            "lane",
            "start_ns",
            "end_ns",
            "dur_ns",
            pl.col("name").fill_null("(unnamed)"),
            pl.when(is_kind(Kind.KERNEL) & is_communication())
            .then(pl.lit(COMMUNICATION))
            .when(pl.Series(mask_of(trace.events, is_module())[placed["event"].to_numpy()]))
            .then(pl.lit(MODULE))
            .otherwise(pl.col("kind").cast(pl.String))
            .alias("kind"),
        )
        # Stable, as the merging below: slices that start together on a lane stay in the order of the trace.
        .sort("track", "lane", "start_ns", maintain_order=True)
    )
    if events.height <= limit:
        shown = _without_passing(trace, events)
        return Slices(shown, np.arange(shown.height), events.height - shown.height)
    row = positions(events["event"].to_numpy(), trace.events.height)
    return Slices(events, np.sort(row[timeline(trace, limit=limit)["event"].to_numpy()]))


def _without_passing(trace: RankTrace, events: pl.DataFrame) -> pl.DataFrame:
    """The slices without frames that only pass a call on, what they call moved up; all where rows would overlap then."""
    passing = passing_frames(trace)
    if not passing.any():
        return events
    rows = events["event"].to_numpy()
    on_host = mask_of(trace.events, is_kind(*HOST))
    up = np.where(on_host, num_above(trace.parent, passing), 0)
    lane = events["lane"].to_numpy() - up[rows]
    shown = (
        events.with_columns(lane=pl.Series(lane, dtype=pl.Int64))
        .filter(pl.Series(~passing[rows]))
        .sort("track", "lane", "start_ns", maintain_order=True)
    )
    beside = (pl.col("track") == pl.col("track").shift()) & (pl.col("lane") == pl.col("lane").shift())
    overlap = beside & (pl.col("start_ns") < pl.col("end_ns").shift())
    return events if shown.select(overlap.any()).item() else shown
