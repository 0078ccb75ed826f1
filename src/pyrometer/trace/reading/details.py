"""What the arguments of events say, gathered into the tables that hold it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import Kind
from pyrometer.trace.reading import arguments
from pyrometer.trace.reading.columns import column, nulls
from pyrometer.trace.reading.decoding import AnyEvent
from pyrometer.trace.reading.scanned import ScannedEvents
from pyrometer.trace.reading.shapes import CollectiveArgs
from pyrometer.trace.reading.whereabouts import Whereabouts

LAUNCHED = "launched"
"""Table of what calls launch, where they say so."""

LINKED = ("correlation", "external", "device", "stream")
"""Arguments that `events` holds itself."""

SIZE = re.compile(r"(?i)(?:^|[ _(])(?:num|n)?(?:bytes|size)(?:$|[ _)])")
"""Keys under which the size of a copy stands, where it is not `bytes`."""

MOST_BYTES = 2**62

Lists = Mapping[str, Sequence[Any]]
"""Decoded arguments, by the name of their field."""

Columns = Mapping[str, pl.Series]
"""The same as columns."""


def types_of(table: str) -> dict[str, Any]:
    """Types of the columns that arguments of a kind go to."""
    return {
        **schema.dtypes(schema.TABLES[table]),
        **{name: schema.EVENTS[name].dtype for name in LINKED},
        "collective_name": pl.String,
    }


def _lists(args: Sequence[msgspec.Struct], shape: type[msgspec.Struct]) -> Lists:
    fields = zip(*map(msgspec.structs.astuple, args), strict=True)
    return dict(zip(shape.__struct_fields__, fields, strict=True))


def _sizes_by_other_keys(sizes: pl.Series, events: Sequence[AnyEvent]) -> pl.Series:
    """The same, and what a vendor wrote under another key, such as `size` or `transfer_bytes`."""
    known: list[int | None] = sizes.to_list()
    unsized = sizes.is_null().arg_true().to_list()
    texts, _ = arguments.readable([events[i].args for i in unsized])
    for i, text in zip(unsized, texts, strict=True):
        said = (value for key, value in msgspec.json.decode(text).items() if SIZE.search(key))
        known[i] = next((value for value in said if type(value) is int and 0 <= value < MOST_BYTES), None)
    return pl.Series(sizes.name, known, dtype=sizes.dtype)


class Details:
    """Parts of the tables, kind by kind and chunk by chunk.

    Args:
        whereabouts: of the present chunk, for counting damage.
    """

    def __init__(self, whereabouts: Whereabouts) -> None:
        self.parts: dict[str, list[pl.DataFrame]] = defaultdict(list)
        self._whereabouts = whereabouts

    def add(self, kind: Kind, events: Sequence[AnyEvent], rows: pl.Series) -> dict[str, pl.Series]:
        """Take the arguments of one kind's events; gives the columns of `LINKED`.

        Args:
            kind: of the events.
            events: in the order of their rows.
            rows: of `events`.
        """
        shape = arguments.SHAPES.get(kind)
        if shape is None:
            self._add_extras(events, rows)
            columns: Columns = {}
        else:
            table = arguments.TABLE_OF.get(kind)
            columns = self._columns(shape, events, types_of(table or LAUNCHED))
            if table == "copies" and columns["bytes"].null_count():
                columns = {**columns, "bytes": _sizes_by_other_keys(columns["bytes"], events)}
            if table is not None:
                self._append(table, columns, rows)
            elif "kernel" in columns:
                self._append(LAUNCHED, columns, rows, (columns["kernel"].fill_null("") != "").arg_true())
            if "collective_name" in columns:
                self._add_collectives(columns["collective_name"], events, rows)
        return {
            name: columns[name] if name in columns else nulls(name, len(events), schema.EVENTS[name].dtype)
            for name in LINKED
        }

    def _columns(
        self, shape: type[msgspec.Struct], events: Sequence[AnyEvent], types: dict[str, Any]
    ) -> Columns:
        """The arguments of one kind's events, each as a column."""
        legacy = "legacy_dims" in shape.__struct_fields__
        if isinstance(events, ScannedEvents):
            scanned = None if legacy and events.hold("Input dims") else events.columns(shape, types)
            if scanned is not None:
                return scanned
        args, findings = arguments.decode([event.args for event in events], shape)
        self._note_findings(findings, events)
        lists = _lists(args, shape)
        if legacy and b'"Input dims"' in self._whereabouts.text:
            pairs = zip(lists["input_dims"], lists["legacy_dims"], strict=True)
            lists = {**lists, "input_dims": [new if bytes(new) else old for new, old in pairs]}
        return {name: self.column(name, lists[name], types[name], events) for name in lists if name in types}

    def texts(self, events: Sequence[AnyEvent]) -> pl.Series:
        """Arguments as JSON text."""
        texts, findings = arguments.readable([event.args for event in events])
        self._note_findings(findings, events)
        return pl.Series("args", texts, dtype=pl.String)

    def _append(self, table: str, columns: Columns, rows: pl.Series, places: pl.Series | None = None) -> None:
        """Add rows to a table, or the rows at some places, of which there may be none."""
        held = [columns[name] for name in schema.TABLES[table] if name in columns]
        if places is None:
            self.parts[table].append(pl.DataFrame([rows, *held]))
        elif len(places):
            self.parts[table].append(pl.DataFrame([rows, *held])[places])

    def _add_collectives(self, names: pl.Series, events: Sequence[AnyEvent], rows: pl.Series) -> None:
        places = (names.fill_null("") != "").arg_true().to_list()
        if not places:
            return
        held = events.at(places) if isinstance(events, ScannedEvents) else [events[i] for i in places]
        args, _ = arguments.decode([event.args for event in held], CollectiveArgs)
        for arg in args:
            if arg.group_name is None and arg.legacy_group is not None:
                arg.group_name = str(arg.legacy_group)
            if isinstance(arg.is_async, (str, int)):
                arg.is_async = str(arg.is_async).lower() in {"true", "1"}
        lists, types = _lists(args, CollectiveArgs), schema.dtypes(schema.COLLECTIVES)
        columns = {name: self.column(name, lists[name], types[name], held) for name in lists if name in types}
        self._append("collectives", columns, rows.gather(places))

    def _add_extras(self, events: Sequence[AnyEvent], rows: pl.Series) -> None:
        if isinstance(events, ScannedEvents) and not events.have_arguments():
            return
        raws = [event.args for event in events]
        if raws.count(msgspec.Raw(b"{}")) == len(raws):
            return
        table = pl.DataFrame([rows, self.texts(events)])
        self.parts["extras"].append(table.filter(pl.col("args") != "{}"))

    def column(self, name: str, values: Sequence[Any], dtype: Any, events: Sequence[AnyEvent]) -> pl.Series:
        """A typed column of a value that each event has."""
        found, num_lost = column(name, values, dtype)
        if num_lost:
            held = zip(values, found.is_null().to_list(), events, strict=True)
            self._whereabouts.note(
                "out_of_range", [event for value, lost, event in held if lost and value is not None]
            )
        return found

    def _note_findings(self, findings: Sequence[arguments.Finding], events: Sequence[AnyEvent]) -> None:
        for i, codes in findings:
            for code in codes:
                self._whereabouts.note(code, [events[i]])
