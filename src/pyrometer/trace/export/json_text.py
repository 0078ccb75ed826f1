"""Columns as JSON text, all rows at once: exact times, escaped names, arguments under the names that Kineto gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

import msgspec
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.reading import shapes
from pyrometer.trace.reading.arguments import SHAPES, TABLE_OF
from pyrometer.trace.trace import RankTrace

IN_EVENTS = ("correlation", "external", "device", "stream")
"""Arguments that `events` itself holds."""


def microseconds(column: str) -> pl.Expr:
    """Integer nanoseconds as decimal microseconds, digit for digit.

    >>> pl.DataFrame({"t": [1712170290183634593, -1, 2000]}).select(
    ...     microseconds("t")
    ... )["t"].to_list()
    ['1712170290183634.593', '-0.001', '2.000']
    """
    amount = pl.col(column).abs()
    sign = pl.when(pl.col(column) < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    rest = (amount % 1000).cast(pl.String).str.zfill(3)
    return pl.concat_str(sign, (amount // 1000).cast(pl.String), pl.lit("."), rest).alias(column)


def quoted(texts: pl.Series) -> pl.Series:
    """Strings as JSON; each distinct one is escaped once."""
    unique = texts.unique().drop_nulls()
    escaped = pl.Series([msgspec.json.encode(text).decode() for text in unique.to_list()], dtype=pl.String)
    table = pl.DataFrame({"text": unique, "escaped": escaped})
    joined = texts.alias("text").to_frame().join(table, on="text", how="left", maintain_order="left")
    escaped_texts: pl.Series = joined["escaped"]
    return escaped_texts.alias(texts.name)


def object_text(members: Iterable[tuple[str, pl.Series]]) -> pl.Series:
    """One JSON object per row, of members whose values are JSON text; null values are left out.

    >>> object_text([("a", pl.Series(["1", None])), ("b", pl.Series(['"x"', "[2]"]))]).to_list()
    ['{"a":1,"b":"x"}', '{"b":[2]}']
    """
    columns = [
        (pl.lit(msgspec.json.encode(name).decode() + ":") + pl.lit(values)).alias(str(i))
        for i, (name, values) in enumerate(members)
    ]
    body = pl.concat_str(columns, separator=",", ignore_nulls=True)
    return pl.select(pl.lit("{") + body + pl.lit("}")).to_series()


def argument_text(trace: RankTrace) -> pl.Series:
    """The arguments of every event as JSON text; null where it has none."""
    events = trace.tables["events"]
    parts = []
    for (kind,), rows in events.group_by("kind"):
        shape = SHAPES.get(Kind(kind))
        if shape is not None:
            parts += _arguments(trace, rows, Kind(kind), shape)
    extras = trace.tables["extras"].select("event", pl.col("args").alias("text"))
    table = pl.concat([*parts, extras]) if parts else extras
    return events.select("event").join(table, on="event", how="left", maintain_order="left")["text"]


def _arguments(
    trace: RankTrace, rows: pl.DataFrame, kind: Kind, shape: type[msgspec.Struct]
) -> list[pl.DataFrame]:
    name = TABLE_OF.get(kind)
    held = rows.select("event", *IN_EVENTS)
    if name is not None:
        held = held.join(trace.tables[name], on="event", how="left", maintain_order="left")
    members = list(_members(held, shape))
    collectives = trace.tables["collectives"].filter(pl.col("event").is_in(rows["event"].implode()))
    if collectives.height:
        beside = held.select("event").join(collectives, on="event", how="left", maintain_order="left")
        members += _members(beside, shapes.CollectiveArgs)
    return [pl.DataFrame({"event": held["event"], "text": object_text(members)})] if members else []


def _members(rows: pl.DataFrame, shape: type[msgspec.Struct]) -> Iterable[tuple[str, pl.Series]]:
    for field in msgspec.structs.fields(shape):
        if field.name not in rows.columns:
            continue
        values = rows[field.name]
        if not values.count():
            continue
        yield field.encode_name, _as_json(values, is_raw=field.type is msgspec.Raw)


def _as_json(values: pl.Series, *, is_raw: bool) -> pl.Series:
    if values.dtype == pl.String:
        return values if is_raw else quoted(values)
    if isinstance(values.dtype, pl.List):
        inner = values.list.eval(pl.element().cast(pl.String)).list.join(",")
        whole: pl.Series = inner.to_frame("list").select(pl.format("[{}]", "list")).to_series()
        return whole
    if values.dtype.is_float():
        known = [None if value is None or not isfinite(value) else repr(value) for value in values.to_list()]
        return pl.Series(known, dtype=pl.String)
    text: pl.Series = values.cast(pl.String)
    return text


Columns = Mapping[str, pl.Series | str]
"""A plain string is the same JSON text in each row."""


def lines(members: Columns, height: int) -> list[str]:
    """One JSON object per row."""
    columns = [
        (
            name,
            values
            if isinstance(values, pl.Series)
            else pl.Series([values], dtype=pl.String).new_from_index(0, height),
        )
        for name, values in members.items()
    ]
    return object_text(columns).to_list() if height else []
