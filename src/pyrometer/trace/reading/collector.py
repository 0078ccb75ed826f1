"""Gathering decoded events into the tables of a trace, chunk by chunk, so that memory holds columns and one chunk."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import DEVICE_WORK, Kind
from pyrometer.trace.reading.chunks import Batch
from pyrometer.trace.reading.columns import whole_numbers
from pyrometer.trace.reading.details import LINKED, Details
from pyrometer.trace.reading.entries import (
    COUNTER,
    FLOW,
    INSTANT,
    KINDS,
    METADATA,
    PAIR,
    Entries,
    IntArray,
    Sorts,
    names_of,
    to_entries,
)
from pyrometer.trace.reading.pairs import Pairs
from pyrometer.trace.reading.repair_log import RepairLog
from pyrometer.trace.reading.scanned import ScannedEvents
from pyrometer.trace.reading.times import NO_TIME
from pyrometer.trace.reading.tracks import Tracks
from pyrometer.trace.reading.whereabouts import Whereabouts

ON_DEVICE = frozenset({*DEVICE_WORK, Kind.SYNC, Kind.DEVICE_EVENT, Kind.GPU_USER_ANNOTATION})
KIND_VALUES = pl.Series([kind.value for kind in KINDS], dtype=schema.KIND)

NAMELESS = "(no name)"
"""Stands for the name of an event that has none."""

CLAMPED_GAP_NS = 3600 * 10**9
"""An event at 0 while all others begin an hour later was put there by the profiler."""


class Collector:
    """Takes the events of one file and gives its tables.

    Args:
        repair_log: where damage is counted.
    """

    def __init__(self, repair_log: RepairLog) -> None:
        self.unknown_categories: dict[str, int] = defaultdict(int)
        self._repair_log = repair_log
        self._tracks = Tracks()
        self._sorts = Sorts(self._tracks)
        self._pairs = Pairs(repair_log)
        self._whereabouts = Whereabouts(repair_log)
        self._details = Details(self._whereabouts)
        self._parts = self._details.parts
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Take the events of one chunk."""
        self._whereabouts.enter(batch)
        self._add(to_entries(batch.events, batch.start, self._sorts))

    def tables(self, rank: int) -> dict[str, pl.DataFrame]:
        """The finished tables, rows in order of start and keyed by their row number."""
        self._add_pairs()
        parts = {name: _whole(self._parts.pop(name, []), name) for name in schema.TABLES if name != "tracks"}
        events = self._without_clamped(parts.pop("events"))
        events = events.sort("start_ns", -pl.col("dur_ns"), pl.col("kind").to_physical(), "event")
        place = np.full(self._rows, -1, np.int64)
        place[events["event"].to_numpy()] = np.arange(events.height)
        events = events.with_columns(
            event=pl.int_range(pl.len(), dtype=pl.UInt32), rank=pl.lit(rank, pl.Int32)
        ).select(list(schema.EVENTS))
        tables = {"events": events}
        for name, part in parts.items():
            if "event" in part.columns:
                keyed = part.with_columns(event=pl.Series(place[part["event"].to_numpy()]))
                keyed = keyed.filter(pl.col("event") >= 0) if events.height < self._rows else keyed
                tables[name] = keyed.with_columns(pl.col("event").cast(pl.UInt32)).sort("event")
            else:
                tables[name] = part.with_columns(rank=pl.lit(rank, pl.Int32))
        on_device = events.filter(pl.col("kind").is_in([kind.value for kind in ON_DEVICE]))["track"]
        return {**tables, "tracks": self._tracks.table(rank, set(on_device.unique().to_list()))}

    def _add(self, entries: Entries) -> None:
        untimed = (entries.start == NO_TIME) & (entries.roles != METADATA)
        if untimed.any():
            self._whereabouts.note("missing_time", entries.where(untimed).events, lost=True)
            entries = entries.where(~untimed)
        for event in entries.of_role(METADATA).events:
            self._tracks.name(event.name, event.pid, event.tid, bytes(event.args))
        self._pairs.add(entries.of_role(PAIR), self._whereabouts.offset)
        self._add_flows(entries.of_role(FLOW))
        self._add_counters(entries.of_role(COUNTER))
        self._add_events(entries.between(0, int(np.searchsorted(entries.roles, len(KINDS)))))

    def _add_events(self, entries: Entries) -> None:
        if not len(entries):
            return
        rows = np.arange(self._rows, self._rows + len(entries), dtype=np.uint32)
        self._rows += len(entries)
        dur = self._sound_durations(entries)
        linked: dict[str, list[pl.Series]] = {name: [] for name in LINKED}
        for role in np.flatnonzero(np.bincount(entries.roles)).tolist():
            group = entries.of_role(role)
            self._count_unknown(role, group)
            low = int(np.searchsorted(entries.roles, role))
            numbers = pl.Series("event", rows[low : low + len(group)])
            columns = self._details.add(KINDS[role], group.events, numbers)
            for name, values in columns.items():
                linked[name].append(values)
        categories = pl.Series(self._sorts.categories, dtype=pl.String)
        self._parts["events"].append(
            pl.DataFrame(
                {
                    "event": rows,
                    "kind": KIND_VALUES.gather(entries.roles),
                    "cat": categories.gather(entries.sorts),
                    "name": names_of(entries.events).fill_null(NAMELESS),
                    "track": self._track_of(entries),
                    "start_ns": entries.start,
                    "dur_ns": dur,
                    "end_ns": entries.start + dur,
                    **{name: pl.concat(values) for name, values in linked.items()},
                }
            )
        )

    def _count_unknown(self, role: int, group: Entries) -> None:
        if KINDS[role] not in {Kind.OTHER, Kind.INSTANT}:
            return
        for sort, count in zip(*np.unique(group.sorts, return_counts=True), strict=True):
            ph, category = self._sorts.phases[sort], self._sorts.categories[sort]
            if role != INSTANT:
                self.unknown_categories[category or ""] += int(count)
            elif ph not in "XiI":
                self.unknown_categories[f"ph {ph}"] += int(count)

    def _sound_durations(self, entries: Entries) -> IntArray:
        if not (entries.dur < 0).any():
            return entries.dur
        is_complete = np.array([ph == "X" for ph in self._sorts.phases])[entries.sorts]
        missing = (entries.dur == NO_TIME) & is_complete
        negative = (entries.dur < 0) & (entries.dur != NO_TIME)
        for code, mask in (("missing_duration", missing), ("negative_duration", negative)):
            self._whereabouts.note(code, entries.where(mask).events)
        return np.maximum(entries.dur, 0)

    def _add_flows(self, entries: Entries) -> None:
        if not len(entries):
            return
        events = entries.events
        ids = events.ids() if isinstance(events, ScannedEvents) else None
        if ids is None:
            ids = self._details.column("id", whole_numbers([event.id for event in events]), pl.Int64, events)
        self._parts["flows"].append(
            pl.DataFrame(
                {
                    "ph": pl.Series(self._sorts.phases, dtype=pl.String).gather(entries.sorts),
                    "name": names_of(events),
                    "id": ids,
                    "track": self._track_of(entries),
                    "ts_ns": entries.start,
                }
            )
        )

    def _add_counters(self, entries: Entries) -> None:
        if not len(entries):
            return
        self._parts["counters"].append(
            pl.DataFrame(
                {
                    "name": names_of(entries.events),
                    "track": self._track_of(entries),
                    "ts_ns": entries.start,
                    "values": self._details.texts(entries.events),
                }
            )
        )

    def _add_pairs(self) -> None:
        events, start, dur = self._pairs.complete()
        if events:
            self._whereabouts.enter(Batch(events, start, b"".join(event.args for event in events), 0))
            self._add(to_entries(events, start, self._sorts, dur))

    def _track_of(self, entries: Entries) -> IntArray:
        return np.array(self._sorts.tracks, dtype=np.int32)[entries.sorts]  # type: ignore[return-value]

    def _without_clamped(self, events: pl.DataFrame) -> pl.DataFrame:
        first = events.filter(pl.col("start_ns") > 0)["start_ns"].min()
        clamped = events["start_ns"] == 0
        if not clamped.any() or not isinstance(first, int) or first < CLAMPED_GAP_NS:
            return events
        self._repair_log.note("clamped_time", lost=int(clamped.sum()))
        return events.filter(~clamped)


def _whole(parts: list[pl.DataFrame], name: str) -> pl.DataFrame:
    table = schema.TABLES[name]
    if not parts:
        return schema.empty(table)
    whole = pl.concat([schema.empty(table), *parts], how="diagonal")
    return whole.select(pl.col(column).cast(spec.dtype) for column, spec in table.items())
