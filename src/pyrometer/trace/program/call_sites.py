"""Places in the user's program that issue many pieces of work."""

from __future__ import annotations

import msgspec
import polars as pl

from pyrometer.trace.program.where import place_of, places_of
from pyrometer.trace.records.device import CallSite
from pyrometer.trace.trace import RankTrace

SAID_SITES = 10


def call_sites(trace: RankTrace, rows: pl.DataFrame, total_ns: int, num_steps: int) -> list[CallSite]:
    """Lines, else modules, else operators that issue the most short work."""
    if not rows.height:
        return []
    places = places_of(trace, rows["event"])
    table = pl.concat([rows.select("event", "time"), places], how="horizontal").with_columns(
        name=pl.coalesce("op", trace.events["name"].gather(rows["event"])).fill_null("")
    )
    site = ["file", "line", "function", "module", "phase"]
    placed = pl.col("file").is_not_null() | pl.col("module").is_not_null()
    named = table.with_columns(key=pl.when(placed).then(pl.lit("")).otherwise("name"))
    found = (
        named.group_by(*site, "key")
        .agg(pl.len().alias("calls"), pl.col("time").sum(), pl.col("name").mode().sort().first())
        .sort("time", "calls", "name", *site, descending=[True, True, *[False] * (1 + len(site))])
        .head(SAID_SITES)
    )
    return [
        CallSite(
            where=msgspec.structs.replace(place_of(row), op=row["name"]),
            name=row["name"],
            calls=row["calls"],
            calls_per_step=row["calls"] / num_steps if num_steps else None,
            total_ns=row["time"],
            share=row["time"] / total_ns if total_ns else 0.0,
        )
        for row in found.iter_rows(named=True)
    ]
