"""Naming the place of an event for people: source line, module, operator, phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from pyrometer.place import Place
from pyrometer.trace.naming.frames import frame_kinds, frame_parts
from pyrometer.trace.naming.patterns import PHASE, module_names
from pyrometer.trace.rows import IntArray, numbered, pick, row_numbers
from pyrometer.trace.trace import RankTrace, kept

PLACE = ("file", "line", "function", "module", "op", "phase")
"""Columns of `place_names`, and the fields of `Place`."""


@kept
def place_names(trace: RankTrace) -> pl.DataFrame:
    """One row per event: `file, line, function, module, op, phase`; null where the trace does not say.

    File, line and function are those of the innermost Python function in the user's own code, which a trace holds that
    was captured with stacks; where all functions are libraries', of the innermost library outside of torch. The profiler
    names the line at which a function begins; only functions that were running already when it started show the line
    that was being run. Of old files, which hold no Python functions, the call stack of the operator is taken.
    """
    names = trace.events["name"]
    modules, which = numbered(trace.places.module)
    return _frames(trace).with_columns(
        module=pick(module_names(pick(names, modules)), which),
        op=pick(names, row_numbers(trace.events["op"])),
        phase=phase_names(trace),
    )


@kept
def phase_names(trace: RankTrace) -> pl.Series:
    """The phase of each event, where it is marked: the last column of `place_names` for who needs no other."""
    phases, which = numbered(trace.places.phase)
    return pick(pick(trace.events["name"], phases).str.strip_prefix(PHASE), which)


def _frames(trace: RankTrace) -> pl.DataFrame:
    """For each event `file, line, function` of its Python function; each function is taken apart once."""
    rows, which = numbered(trace.places.frame)
    texts = pick(trace.events["name"], rows)
    if rows[:1].tolist() == [-1]:
        stacks, row_of = _stack_frames(trace)
        which = np.where(trace.places.frame >= 0, which, len(rows) + row_of)
        texts = texts.append(stacks)
    return frame_parts(texts)[which]


def where(trace: RankTrace, event: int) -> Place:
    """The place of one event."""
    return Place(**place_names(trace).row(event, named=True))


def places_of(trace: RankTrace, events: pl.Series) -> pl.DataFrame:
    """The places of some events, one row each, in their order: the columns of `place_names`."""
    rows: pl.DataFrame = place_names(trace)[events.cast(pl.UInt32).to_numpy()]
    return rows


def place_of(row: Mapping[str, Any]) -> Place:
    """The place that a row of a frame names, in those of the columns of `PLACE` that it has."""
    return Place(**{name: row[name] for name in PLACE if name in row})


def _stack_frames(trace: RankTrace) -> tuple[pl.Series, IntArray]:
    """The user's functions in the call stacks that operators name, as texts; and which of them is each event's."""
    stacks = (
        trace.tables["ops"].select("event", "call_stack").filter(pl.col("call_stack").fill_null("") != "")
    )
    entries = stacks.select(pl.col("call_stack").unique()).with_columns(
        name=pl.col("call_stack").str.split(";")
    )
    entries = entries.explode("name").with_row_index("place")
    # What called our own code that runs the step only started us; places count from the innermost.
    began = pl.col("place").filter("runs_steps").min().over("call_stack").fill_null(entries.height)
    chosen = (
        entries.join(frame_kinds(entries["name"]), on="name")
        .filter(pl.col("place") < began)
        .filter(pl.col("is_user") | pl.col("is_library"))
        .sort("is_library", "place")
        .unique("call_stack", keep="first", maintain_order=True)
        .select("call_stack", "name")
        .with_row_index("text")
    )
    rows = stacks.join(chosen, on="call_stack", how="inner")
    text_of = np.full(trace.events.height + 1, chosen.height, np.int64)  # the last one stands for none
    text_of[rows["event"].to_numpy()] = rows["text"].to_numpy()
    return chosen["name"].append(pl.Series([None], dtype=pl.String)), text_of[trace.places.stack]
