"""Gathering decoded events into the tables of a trace, chunk by chunk, so that memory holds columns and one chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import DEVICE_WORK, Kind, kind_of
from pyrometer.trace.reading import arguments
from pyrometer.trace.reading.shapes import CollectiveArgs, Event, ExactEvent

AnyEvent = Event | ExactEvent

ON_DEVICE = frozenset({*DEVICE_WORK, Kind.SYNC, Kind.DEVICE_EVENT, Kind.GPU_USER_ANNOTATION})
LINKED = ("correlation", "external", "device", "stream")
BOOKKEEPING = ("process_name", "thread_name")


class Collector:
    """Takes the events of one rank and gives its tables."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.num_events = 0
        self.unknown_categories: dict[str, int] = defaultdict(int)
        self._tracks: dict[tuple[Any, Any], int] = {}
        self._labels: dict[tuple[int, str], str] = {}
        self._process_names: dict[str, str] = {}
        self._parts: dict[str, list[pl.DataFrame]] = defaultdict(list)
        self._rows = 0

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Take the events of one chunk."""
        self.num_events += len(events)
        groups: dict[tuple[str, str | None], list[AnyEvent]] = defaultdict(list)
        for event in events:
            groups[event.ph, event.cat].append(event)
        for (ph, category), group in groups.items():
            if ph == "M":
                self._name_tracks(group)
            elif ph in "stf":
                self._add_flows(group)
            elif ph == "C":
                self._add_counters(group)
            elif ph in "iI" or category == "cpu_instant_event":
                self._add_instants(group, category)
            else:
                self._add_events(group, kind_of(category), category)

    def tables(self) -> dict[str, pl.DataFrame]:
        """The finished tables, rows in order of start and keyed by their row number."""
        parts = {name: _concat(self._parts.pop(name, []), name) for name in schema.TABLES if name != "tracks"}
        events = parts["events"].with_columns(
            _nesting=pl.col("kind").to_physical(), _row=pl.col("event"), rank=pl.lit(self.rank, pl.Int32)
        )
        events = events.sort("start_ns", -pl.col("dur_ns"), "_nesting", "_row")
        place = np.empty(events.height, np.uint32)
        place[events["_row"].to_numpy()] = np.arange(events.height, dtype=np.uint32)
        events = events.with_columns(event=pl.int_range(pl.len(), dtype=pl.UInt32)).select(
            list(schema.EVENTS)
        )
        keyed = {
            name: part.with_columns(event=pl.Series(place[part["event"].to_numpy()])).sort("event")
            if name != "events" and "event" in part.columns
            else part.with_columns(rank=pl.lit(self.rank, pl.Int32))
            for name, part in parts.items()
        }
        return {**keyed, "events": events, "tracks": self._track_table(events)}

    def _add_events(self, group: list[AnyEvent], kind: Kind, category: str | None) -> None:
        if kind is Kind.OTHER:
            self.unknown_categories[category or ""] += len(group)
        raws = [arguments.ABSENT if event.args is msgspec.UNSET else event.args for event in group]
        self._add(group, kind, category, raws)

    def _add_instants(self, group: list[AnyEvent], category: str | None) -> None:
        memory = [event for event in group if event.name == "[memory]"]
        others = [event for event in group if event.name != "[memory]"]
        for kind, members in ((Kind.MEMORY, memory), (Kind.INSTANT, others)):
            if members:
                raws = [arguments.ABSENT if event.args is msgspec.UNSET else event.args for event in members]
                self._add(members, kind, category, raws)

    def _add(self, group: list[AnyEvent], kind: Kind, category: str | None, raws: list[msgspec.Raw]) -> None:
        rows = pl.int_range(self._rows, self._rows + len(group), dtype=pl.UInt32, eager=True).alias("event")
        self._rows += len(group)
        start = nanoseconds([event.ts for event in group])
        dur = np.maximum(nanoseconds([event.dur for event in group]), 0)
        columns: dict[str, Any] = {
            "event": rows,
            "kind": pl.repeat(kind.value, len(group), dtype=schema.KIND, eager=True),
            "cat": pl.repeat(category, len(group), dtype=pl.String, eager=True),
            "name": pl.Series([event.name for event in group], dtype=pl.String),
            "track": pl.Series(self._track_ids(group), dtype=pl.Int32),
            "start_ns": start,
            "dur_ns": dur,
            "end_ns": start + dur,
        }
        shape = arguments.SHAPES.get(kind)
        if shape is None:
            self._add_extras(rows, raws)
        else:
            columns |= self._add_arguments(rows, kind, raws, arguments.decode(raws, shape))
        self._parts["events"].append(pl.DataFrame(columns))

    def _add_arguments(
        self, rows: pl.Series, kind: Kind, raws: list[msgspec.Raw], args: list[Any]
    ) -> dict[str, Any]:
        held = set(arguments.SHAPES[kind].__struct_fields__)
        if "legacy_dims" in held:
            for one in args:
                if one.input_dims is msgspec.UNSET:
                    one.input_dims = one.legacy_dims
        name = arguments.TABLE_OF.get(kind)
        if name is not None:
            table = schema.TABLES[name]
            names = [column for column in table if column in held]
            self._parts[name].append(arguments.frame(args, names, table).insert_column(0, rows))
        if kind in {Kind.CPU_OP, Kind.USER_ANNOTATION, Kind.KERNEL}:
            self._add_collectives(rows, raws)
        linked = [column for column in LINKED if column in held]
        return {c: arguments.frame(args, [c], schema.EVENTS).to_series() for c in linked}

    def _add_collectives(self, rows: pl.Series, raws: list[msgspec.Raw]) -> None:
        texts = [bytes(raw) for raw in raws]
        places = [i for i, text in enumerate(texts) if b'"Collective name"' in text]
        if not places:
            return
        args = arguments.decode([raws[i] for i in places], CollectiveArgs)
        for one in args:
            if one.group_name is None and one.legacy_group is not None:
                one.group_name = str(one.legacy_group)
            if isinstance(one.is_async, (str, int)):
                one.is_async = str(one.is_async).lower() in {"true", "1"}
        table = schema.COLLECTIVES
        names = [column for column in table if column != "event"]
        self._parts["collectives"].append(
            arguments.frame(args, names, table).insert_column(0, rows.gather(places))
        )

    def _add_extras(self, rows: pl.Series, raws: list[msgspec.Raw]) -> None:
        texts = pl.Series("args", [bytes(raw).decode() for raw in raws], dtype=pl.String)
        told = pl.DataFrame([rows, texts]).filter(texts != "{}")
        if told.height:
            self._parts["extras"].append(told)

    def _add_flows(self, group: list[AnyEvent]) -> None:
        self._parts["flows"].append(
            pl.DataFrame(
                {
                    "ph": pl.Series([event.ph for event in group], dtype=pl.String),
                    "name": pl.Series([event.name for event in group], dtype=pl.String),
                    "id": pl.Series([_whole(event.id) for event in group], dtype=pl.Int64),
                    "track": pl.Series(self._track_ids(group), dtype=pl.Int32),
                    "ts_ns": nanoseconds([event.ts for event in group]),
                }
            )
        )

    def _add_counters(self, group: list[AnyEvent]) -> None:
        self._parts["counters"].append(
            pl.DataFrame(
                {
                    "name": pl.Series([event.name for event in group], dtype=pl.String),
                    "track": pl.Series(self._track_ids(group), dtype=pl.Int32),
                    "ts_ns": nanoseconds([event.ts for event in group]),
                    "values": [None if e.args is msgspec.UNSET else bytes(e.args).decode() for e in group],
                },
                schema_overrides={"values": pl.String},
            )
        )

    def _name_tracks(self, group: list[AnyEvent]) -> None:
        for event in group:
            if event.name in BOOKKEEPING and event.args is not msgspec.UNSET:
                label = str(msgspec.json.decode(event.args, type=dict[str, Any]).get("name") or "")
                if event.name == "process_name":
                    self._process_names[str(event.pid)] = label
                else:
                    self._labels[self._track_ids([event])[0], "thread_name"] = label

    def _track_ids(self, group: list[AnyEvent]) -> list[int]:
        tracks = self._tracks
        return [tracks.setdefault((event.pid, event.tid), len(tracks)) for event in group]

    def _track_table(self, events: pl.DataFrame) -> pl.DataFrame:
        on_device = events.filter(pl.col("kind").is_in([kind.value for kind in ON_DEVICE]))["track"].unique()
        devices = set(on_device.to_list())
        rows = [
            {
                "track": track,
                "rank": self.rank,
                "pid": str(pid),
                "tid": str(tid),
                "process_name": self._process_names.get(str(pid)),
                "thread_name": self._labels.get((track, "thread_name")),
                "is_device": track in devices,
            }
            for (pid, tid), track in self._tracks.items()
        ]
        return pl.DataFrame(rows, schema=schema.dtypes(schema.TRACKS))


def nanoseconds(values: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Microseconds as JSON numbers to integer nanoseconds; a missing one counts as 0.

    Exact for whole numbers, for decimals, and for floats up to 2^53 ns (about three months), the interval that Kineto
    counts from: below that a float of µs with three decimals is nearer to its value than half a nanosecond.

    >>> nanoseconds([1669783687464181, 0, None]).tolist(), nanoseconds([1428625731896.179]).tolist()
    ([1669783687464181000, 0, 0], [1428625731896179])
    """
    kinds = set(map(type, values))
    if kinds <= {int}:
        return np.array(values, dtype=np.int64) * 1000
    if kinds <= {float}:
        return np.rint(np.array(values, dtype=np.float64) * 1000).astype(np.int64)
    return np.array([_exact(value) for value in values], dtype=np.int64)


def _exact(value: Any) -> int:
    return 0 if value is None else value * 1000 if isinstance(value, int) else round(value * 1000)


def _whole(value: int | str | None) -> int | None:
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return None
    return value


def _concat(parts: list[pl.DataFrame], name: str) -> pl.DataFrame:
    table = schema.TABLES[name]
    whole = pl.concat([schema.empty(table), *parts], how="diagonal_relaxed")
    return whole.select(pl.col(column).cast(spec.dtype) for column, spec in table.items())
