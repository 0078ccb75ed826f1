"""What the arguments of events say, gathered into the tables that hold it."""

from __future__ import annotations

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
from pyrometer.trace.reading.shapes import CollectiveArgs
from pyrometer.trace.reading.whereabouts import Whereabouts

LINKED = ("correlation", "external", "device", "stream")
"""Arguments that `events` holds itself."""

Lists = Mapping[str, Sequence[Any]]
"""Decoded arguments, by the name of their field."""


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
        raws = [event.args for event in events]
        shape = arguments.SHAPES.get(kind)
        if shape is None:
            self._add_extras(events, raws, rows)
            lists: Lists = {}
        else:
            args, findings = arguments.decode(raws, shape)
            self._note_findings(findings, events)
            lists = dict(
                zip(
                    shape.__struct_fields__,
                    zip(*map(msgspec.structs.astuple, args), strict=True),
                    strict=True,
                )
            )
            if "legacy_dims" in lists and b'"Input dims"' in self._whereabouts.text:
                pairs = zip(lists["input_dims"], lists["legacy_dims"], strict=True)
                lists = {**lists, "input_dims": [new if bytes(new) else old for new, old in pairs]}
            self._add_table(kind, lists, events, rows)
            self._add_collectives(lists.get("collective_name", ()), events, rows)
            self._add_launched(lists, events, rows)
        return {
            name: self.column(name, lists[name], schema.EVENTS[name].dtype, events)
            if name in lists
            else nulls(name, len(events), schema.EVENTS[name].dtype)
            for name in LINKED
        }

    def texts(self, events: Sequence[AnyEvent]) -> pl.Series:
        """Arguments as JSON text."""
        texts, findings = arguments.readable([event.args for event in events])
        self._note_findings(findings, events)
        return pl.Series("args", texts, dtype=pl.String)

    def _add_table(self, kind: Kind, lists: Lists, events: Sequence[AnyEvent], rows: pl.Series) -> None:
        name = arguments.TABLE_OF.get(kind)
        if name is not None:
            self._append(name, lists, events, rows)

    def _append(self, table: str, lists: Lists, events: Sequence[AnyEvent], rows: pl.Series) -> None:
        spec = schema.TABLES[table]
        columns = [self.column(name, lists[name], spec[name].dtype, events) for name in spec if name in lists]
        self.parts[table].append(pl.DataFrame([rows, *columns]))

    def _add_collectives(
        self, names: Sequence[str | None], events: Sequence[AnyEvent], rows: pl.Series
    ) -> None:
        if names.count(None) == len(names):
            return
        places = [i for i, name in enumerate(names) if name]
        held = [events[i] for i in places]
        args, _ = arguments.decode([event.args for event in held], CollectiveArgs)
        for arg in args:
            if arg.group_name is None and arg.legacy_group is not None:
                arg.group_name = str(arg.legacy_group)
            if isinstance(arg.is_async, (str, int)):
                arg.is_async = str(arg.is_async).lower() in {"true", "1"}
        fields = CollectiveArgs.__struct_fields__
        lists = dict(zip(fields, zip(*map(msgspec.structs.astuple, args), strict=True), strict=True))
        self._append("collectives", lists, held, rows.gather(places))

    def _add_launched(self, lists: Lists, events: Sequence[AnyEvent], rows: pl.Series) -> None:
        """Names of launched kernels, of the calls that have one."""
        places = [i for i, name in enumerate(lists.get("kernel", ())) if name]
        if places:
            held = {name: [lists[name][i] for i in places] for name in ("kernel", "grid", "block")}
            self._append("launched", held, [events[i] for i in places], rows.gather(places))

    def _add_extras(self, events: Sequence[AnyEvent], raws: Sequence[msgspec.Raw], rows: pl.Series) -> None:
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
