"""New tables of a trace in which launches of graphs carry copies of what another trace recorded at their capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.naming.patterns import is_step_mark
from pyrometer.trace.rows import IntArray, Mask, each_once, mask_of, nullable, row_numbers
from pyrometer.trace.trace import RankTrace, Results

NOT_OF_HERE = ("record_function_id", "sequence", "forward_thread", "index")
"""Ids of the other trace, which would link what does not belong together."""


class Graft(NamedTuple):
    """One launch of a graph, and the calls of its capture."""

    call: int  # row of `events`
    work: IntArray  # rows of `events`
    sites: IntArray  # of each piece of work the launching call of the capture, a row of that trace; -1 where none is known
    with_places: bool  # whether functions and modules are those of this launch too


class Copies(NamedTuple):
    """What one launch gets; rows count from its first."""

    source: IntArray  # rows of the trace of the capture, the ones above before the ones below
    above: IntArray  # within these; -1 for what stands below the launching call
    of_work: IntArray  # of each piece of work; -1 for none


def graft(trace: RankTrace, capture: RankTrace, grafts: Sequence[Graft]) -> RankTrace:
    """A trace with copies of what was captured below its launches of graphs; nothing else is changed."""
    ops = mask_of(capture.events, is_kind(Kind.CPU_OP) & ~is_step_mark())
    known: dict[tuple[bytes, bool], Copies] = {}
    first, parts = trace.events.height, []
    for one in grafts:
        key = one.sites.tobytes(), one.with_places
        if key not in known:
            known[key] = _copies(capture, one, ops)
        copies = known[key]
        above = np.where(copies.above >= 0, copies.above + first, one.call)
        of_work = np.where(copies.of_work >= 0, copies.of_work + first, -1)
        parts.append((copies.source, above, one, of_work))
        first += len(copies.source)
    source, above = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    call = np.concatenate([np.full(len(part[0]), part[2].call) for part in parts])
    work = np.concatenate([part[2].work for part in parts])
    of_work = np.concatenate([part[3] for part in parts])
    new = np.arange(trace.events.height, first)
    links = pl.DataFrame({"event": [*new, *work[of_work >= 0]], "above": [*above, *of_work[of_work >= 0]]})
    return replace(
        trace,
        tables=_renumbered(trace, capture, source, call, links),
        results=Results(),
        known_links=None,
        known_sorts=None,
    )


def _copies(capture: RankTrace, one: Graft, ops: Mask) -> Copies:
    """The operators around the launching calls, and with them the functions and modules that are their places."""
    sites = one.sites[one.sites >= 0]
    wanted = ops.copy()
    if one.with_places:
        for rows in (capture.places.frame[sites], capture.places.module[sites]):
            wanted[rows[rows >= 0]] = True
    parent = row_numbers(capture.events["parent"])
    nearest = np.append(capture.nearest(wanted), -1)
    lowest = nearest[one.sites]
    held, rows = np.zeros(len(wanted), np.bool_), each_once(lowest[lowest >= 0])
    while len(rows):
        held[rows] = True
        rows = each_once(nearest[parent[rows]])
        rows = rows[(rows >= 0) & ~held[rows]]
    source = np.flatnonzero(held)
    place = np.full(len(wanted) + 1, -1, np.int64)
    place[source] = np.arange(len(source))
    return Copies(source, place[nearest[parent[source]]], place[lowest])


def _renumbered(
    trace: RankTrace, capture: RankTrace, source: IntArray, call: IntArray, links: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The tables with the new rows, each behind all that begins no later than its launch, and keyed by their new numbers."""
    old = trace.tables["events"]
    launching = old[call]
    added = (
        capture.events[source]
        .select("name", cat=pl.col("kind").cast(pl.String))
        .with_columns(
            launching["rank"],
            launching["track"],
            launching["start_ns"],
            end_ns=launching["start_ns"],
            dur_ns=pl.lit(0, pl.Int64),
            kind=pl.lit(Kind.CAPTURED.value, schema.KIND),
        )
    )
    whole = pl.concat([old, added], how="diagonal_relaxed").with_columns(
        event=pl.int_range(pl.len(), dtype=pl.UInt32)
    )
    order = np.lexsort(
        (whole["event"].to_numpy(), np.arange(whole.height) >= old.height, whole["start_ns"].to_numpy())
    )
    place = np.empty(whole.height, np.int64)
    place[order] = np.arange(whole.height)
    tables = {name: _keyed(table, place) for name, table in trace.tables.items() if name != "events"}
    tables["events"] = (
        whole[order].with_columns(event=pl.int_range(pl.len(), dtype=pl.UInt32)).select(list(schema.EVENTS))
    )
    copied = pl.DataFrame({"source": source, "event": np.arange(old.height, whole.height)}).cast(pl.UInt32)
    arguments = copied.join(
        capture.tables["ops"]
        .rename({"event": "source"})
        .with_columns(pl.lit(None).alias(name) for name in NOT_OF_HERE),
        on="source",
        how="inner",
    )
    tables["ops"] = (
        pl.concat([tables["ops"], _keyed(arguments.drop("source"), place)], how="diagonal_relaxed")
        .sort("event")
        .select(pl.col(name).cast(column.dtype) for name, column in schema.OPS.items())
    )
    tables["captured"] = links.select(
        event=nullable(place[links["event"].to_numpy()]), above=pl.Series(place[links["above"].to_numpy()])
    ).sort("event")
    return tables


def _keyed(table: pl.DataFrame, place: IntArray) -> pl.DataFrame:
    """A table by the new numbers of its events."""
    if "event" not in table.columns:
        return table
    return table.with_columns(event=nullable(place[table["event"].to_numpy()])).sort("event")
