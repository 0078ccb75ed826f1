"""Gathering decoded events into the tables of a trace, chunk by chunk, so that memory holds columns and one chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import DEVICE_WORK, Kind, kind_of
from pyrometer.trace.reading import arguments
from pyrometer.trace.reading.arguments import Finding
from pyrometer.trace.reading.chunks import Batch
from pyrometer.trace.reading.columns import column, nulls
from pyrometer.trace.reading.entries import Entries
from pyrometer.trace.reading.entries import entries as to_entries
from pyrometer.trace.reading.ledger import Ledger
from pyrometer.trace.reading.pairs import Pairs
from pyrometer.trace.reading.shapes import CollectiveArgs
from pyrometer.trace.reading.times import NO_TIME
from pyrometer.trace.reading.tracks import Tracks

IntArray = npt.NDArray[np.int64]

KINDS = list(Kind)
KIND_VALUES = pl.Series([kind.value for kind in KINDS], dtype=schema.KIND)
ON_DEVICE = frozenset({*DEVICE_WORK, Kind.SYNC, Kind.DEVICE_EVENT, Kind.GPU_USER_ANNOTATION})
LINKED = ("correlation", "external", "device", "stream")
MEMORY_NAME = "[memory]"

INSTANT, MEMORY = KINDS.index(Kind.INSTANT), KINDS.index(Kind.MEMORY)
METADATA, FLOW, COUNTER, PAIR = range(len(KINDS), len(KINDS) + 4)
"""What an entry is that is not an event with a kind."""

CLAMPED_GAP_NS = 3600 * 10**9
"""An event at 0 while all others begin an hour later was put there by the profiler."""


class _Sorts(dict[tuple[str, str | None], int]):
    """Numbers the combinations of `ph` and `cat`, and knows what each is: the index of a kind, or a constant above."""

    def __init__(self) -> None:
        super().__init__()
        self.roles: list[int] = []
        self.categories: list[str | None] = []

    def __missing__(self, key: tuple[str, str | None]) -> int:
        ph, category = key
        if ph == "X" and category != "cpu_instant_event":
            role = KINDS.index(kind_of(category))
        else:
            roles = {"M": METADATA, "s": FLOW, "t": FLOW, "f": FLOW, "C": COUNTER} | dict.fromkeys(
                "BEbe", PAIR
            )
            role = roles.get(ph, INSTANT)
        self[key] = len(self.roles)
        self.roles.append(role)
        self.categories.append(category)
        return self[key]


class Collector:
    """Takes the events of one file and gives its tables.

    Args:
        ledger: where damage is counted.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.unknown_categories: dict[str, int] = defaultdict(int)
        self._ledger = ledger
        self._sorts = _Sorts()
        self._tracks = Tracks()
        self._pairs = Pairs(ledger)
        self._parts: dict[str, list[pl.DataFrame]] = defaultdict(list)
        self._rows = 0
        self._batch = Batch([], b"", 0)
        self._track = np.empty(0, dtype=np.int32)  # of the entries of this chunk

    def add(self, batch: Batch) -> None:
        """Take the events of one chunk."""
        self._batch = batch
        entries = to_entries(batch.events)
        sorts = self._sort(entries)
        roles = np.array(self._sorts.roles, dtype=np.uint8)[sorts]
        for i in np.flatnonzero(roles == INSTANT).tolist():
            if entries.name[i] == MEMORY_NAME:
                roles[i] = MEMORY
            elif entries.ph[i] not in "XiI":
                self.unknown_categories[f"ph {entries.ph[i]}"] += 1
        self._add_all(entries, roles, sorts)

    def _sort(self, entries: Entries) -> IntArray:
        keys = zip(entries.ph, entries.cat, strict=True)
        return np.fromiter(map(self._sorts.__getitem__, keys), dtype=np.int64, count=len(entries.ph))

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

    def _add_all(self, entries: Entries, roles: npt.NDArray[np.uint8], sorts: IntArray) -> None:
        timed = entries.start != NO_TIME
        untimed = np.flatnonzero(~timed & (roles != METADATA))
        if len(untimed):
            self._note_events("missing_time", untimed.tolist(), lost=1)
        located = np.flatnonzero(timed & (roles != METADATA) & (roles != PAIR))
        if len(located):
            self._track = self._find_tracks(entries, located)
        for role, take in (
            (METADATA, self._name_tracks),
            (PAIR, self._keep_pairs),
            (FLOW, self._add_flows),
            (COUNTER, self._add_counters),
        ):
            places = np.flatnonzero((roles == role) & (timed | (role == METADATA)))
            if len(places):
                take(entries, places)
        places = np.flatnonzero((roles < len(KINDS)) & timed)
        if len(places):
            places = places[np.argsort(roles[places], kind="stable")]
            categories = pl.Series(self._sorts.categories, dtype=pl.String).gather(sorts[places])
            self._add_events(entries, places, roles[places], categories)

    def _add_events(
        self, entries: Entries, places: IntArray, roles: npt.NDArray[np.uint8], categories: pl.Series
    ) -> None:
        """Add events, sorted by kind."""
        rows = np.arange(self._rows, self._rows + len(places), dtype=np.uint32)
        self._rows += len(places)
        start, dur = entries.start[places], entries.dur[places]
        dur = self._sound_durations(entries, places, dur)
        linked: dict[str, list[pl.Series]] = {name: [] for name in LINKED}
        for role in np.unique(roles).tolist():
            low, high = np.searchsorted(roles, [role, role + 1])
            group = _Group(KINDS[role], places[low:high].tolist(), pl.Series("event", rows[low:high]))
            for name, values in self._add_arguments(entries, group).items():
                linked[name].append(values)
        self._parts["events"].append(
            pl.DataFrame(
                {
                    "event": rows,
                    "kind": KIND_VALUES.gather(roles),
                    "cat": categories,
                    "name": pl.Series(entries.name, dtype=pl.String).gather(places),
                    "track": self._track[places],
                    "start_ns": start,
                    "dur_ns": dur,
                    "end_ns": start + dur,
                    **{name: pl.concat(values) for name, values in linked.items()},
                }
            )
        )

    def _sound_durations(self, entries: Entries, places: IntArray, dur: IntArray) -> IntArray:
        odd = np.flatnonzero(dur < 0)
        if not len(odd):
            return dur
        missing = [int(places[i]) for i in odd if dur[i] == NO_TIME and entries.ph[places[i]] == "X"]
        self._note_events("missing_duration", missing)
        self._note_events("negative_duration", places[odd[dur[odd] != NO_TIME]].tolist())
        return np.maximum(dur, 0)

    def _add_arguments(self, entries: Entries, group: _Group) -> dict[str, pl.Series]:
        """Add the arguments of one kind's events; gives the columns that `events` holds."""
        raws = _pick(entries.args, group.places)
        if group.kind is Kind.OTHER:
            for category in _pick(entries.cat, group.places):
                self.unknown_categories[category or ""] += 1
        shape = arguments.SHAPES.get(group.kind)
        if shape is None:
            self._add_extras(group, raws)
            return {name: nulls(name, len(raws), schema.EVENTS[name].dtype) for name in LINKED}
        args, findings = arguments.decode(raws, shape)
        self._note_findings(findings, group.places)
        held = set(shape.__struct_fields__)
        if "legacy_dims" in held and b'"Input dims"' in self._batch.text:
            for one in args:
                one.input_dims = one.input_dims if bytes(one.input_dims) else one.legacy_dims
        table = arguments.TABLE_OF.get(group.kind)
        if table is not None:
            spec = schema.TABLES[table]
            names = [name for name in spec if name in held]
            self._parts[table].append(self._frame(args, names, spec, group.rows))
        if "collective_name" in held:
            self._add_collectives(group, raws, [i for i, one in enumerate(args) if one.collective_name])
        dtypes = {name: schema.EVENTS[name].dtype for name in LINKED}
        return {
            name: self._column(name, list(map(attrgetter(name), args)), dtype)
            if name in held
            else nulls(name, len(args), dtype)
            for name, dtype in dtypes.items()
        }

    def _add_collectives(self, group: _Group, raws: Sequence[msgspec.Raw], places: list[int]) -> None:
        if not places:
            return
        args, _ = arguments.decode([raws[i] for i in places], CollectiveArgs)
        for one in args:
            if one.group_name is None and one.legacy_group is not None:
                one.group_name = str(one.legacy_group)
            if isinstance(one.is_async, (str, int)):
                one.is_async = str(one.is_async).lower() in {"true", "1"}
        names = [name for name in schema.COLLECTIVES if name != "event"]
        self._parts["collectives"].append(
            self._frame(args, names, schema.COLLECTIVES, group.rows.gather(places))
        )

    def _add_extras(self, group: _Group, raws: Sequence[msgspec.Raw]) -> None:
        texts, findings = arguments.readable(raws)
        self._note_findings(findings, group.places)
        told = pl.DataFrame([group.rows, pl.Series("args", texts, dtype=pl.String)])
        self._parts["extras"].append(told.filter(pl.col("args") != "{}"))

    def _add_flows(self, entries: Entries, places: IntArray) -> None:
        picks = places.tolist()
        self._parts["flows"].append(
            pl.DataFrame(
                {
                    "ph": pl.Series(_pick(entries.ph, picks), dtype=pl.String),
                    "name": pl.Series(_pick(entries.name, picks), dtype=pl.String),
                    "id": self._column("id", _whole_numbers(_pick(entries.id, picks)), pl.Int64),
                    "track": self._track[places],
                    "ts_ns": entries.start[places],
                }
            )
        )

    def _add_counters(self, entries: Entries, places: IntArray) -> None:
        picks = places.tolist()
        texts, findings = arguments.readable(_pick(entries.args, picks))
        self._note_findings(findings, picks)
        self._parts["counters"].append(
            pl.DataFrame(
                {
                    "name": pl.Series(_pick(entries.name, picks), dtype=pl.String),
                    "track": self._track[places],
                    "ts_ns": entries.start[places],
                    "values": pl.Series(texts, dtype=pl.String),
                }
            )
        )

    def _name_tracks(self, entries: Entries, places: IntArray) -> None:
        for i in places.tolist():
            self._tracks.name(entries.name[i], entries.pid[i], entries.tid[i], bytes(entries.args[i]))

    def _keep_pairs(self, entries: Entries, places: IntArray) -> None:
        for i in places.tolist():
            self._pairs.add(entries, i, self._batch.offset)

    def _add_pairs(self) -> None:
        entries = self._pairs.complete()
        if entries.ph:
            sorts = self._sort(entries)
            self._batch = Batch([], b"".join(map(bytes, entries.args)), 0)
            self._add_all(entries, np.array(self._sorts.roles, dtype=np.uint8)[sorts], sorts)

    def _find_tracks(self, entries: Entries, places: IntArray) -> IntArray:
        """Number of the track of each entry, tracks being numbered in the order of the file."""
        picks = places.tolist()
        keys = zip(_pick(entries.pid, picks), _pick(entries.tid, picks), strict=True)
        found = np.full(len(entries.ph), -1, dtype=np.int32)
        found[places] = list(map(self._tracks.__getitem__, keys))
        return found

    def _without_clamped(self, events: pl.DataFrame) -> pl.DataFrame:
        first = events.filter(pl.col("start_ns") > 0)["start_ns"].min()
        clamped = events["start_ns"] == 0
        if not clamped.any() or not isinstance(first, int) or first < CLAMPED_GAP_NS:
            return events
        self._ledger.note("clamped_time", lost=int(clamped.sum()))
        return events.filter(~clamped)

    def _frame(
        self, args: Sequence[Any], names: Sequence[str], table: schema.Table, rows: pl.Series
    ) -> pl.DataFrame:
        columns = [self._column(name, list(map(attrgetter(name), args)), table[name].dtype) for name in names]
        return pl.DataFrame([rows, *columns])

    def _column(self, name: str, values: Sequence[Any], dtype: Any) -> pl.Series:
        found, num_lost = column(name, values, dtype)
        if num_lost:
            self._ledger.note("out_of_range", num=num_lost, byte=self._batch.offset)
        return found

    def _note_findings(self, findings: Sequence[Finding], places: Sequence[int]) -> None:
        for i, codes in findings:
            for code in codes:
                self._note_events(code, [places[i]])

    def _note_events(self, code: str, places: Sequence[int], *, lost: int = 0) -> None:
        """Count events of the present chunk, and find where the first of them lies."""
        if not places:
            return
        byte = self._batch.offset
        if self._batch.events:
            text = bytes(self._batch.events[places[0]].args)
            byte += max(0, self._batch.text.find(text)) if text != b"{}" else 0
        self._ledger.note(code, num=0 if lost else len(places), lost=lost * len(places), byte=byte)


class _Group(NamedTuple):
    """Events of one kind in a chunk."""

    kind: Kind
    places: list[int]  # in the chunk
    rows: pl.Series  # of `events`


def _pick(values: Sequence[Any], places: list[int]) -> Sequence[Any]:
    return itemgetter(*places)(values) if len(places) > 1 else [values[i] for i in places]


def _whole_numbers(values: Sequence[int | str | None]) -> Sequence[int | None]:
    """Ids, also where they are quoted or hexadecimal."""
    if str in set(map(type, values)):
        return [_parsed(value) if isinstance(value, str) else value for value in values]
    return values  # type: ignore[return-value]


def _parsed(value: str) -> int | None:
    try:
        return int(value, 0)
    except ValueError:
        return None


def _whole(parts: list[pl.DataFrame], name: str) -> pl.DataFrame:
    table = schema.TABLES[name]
    whole = pl.concat([schema.empty(table), *parts], how="diagonal")
    return whole.select(pl.col(column).cast(spec.dtype) for column, spec in table.items())
