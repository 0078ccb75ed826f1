"""Naming the place of an event for people: source line, module, operator, phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.place import Place
from pyrometer.trace.naming.frames import frame_kinds, frame_parts
from pyrometer.trace.naming.patterns import PHASE, module_names
from pyrometer.trace.rows import IntArray, numbered, pick, row_numbers
from pyrometer.trace.trace import RankTrace, kept

PLACE = ("file", "line", "function", "module", "op", "phase")
"""Columns of places in a frame, and the fields of `Place`."""

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Phases:
    """The phases that are marked, and which of them each event lies in."""

    names: pl.Series
    phase: Codes

    def of(self, rows: IntArray) -> pl.Series:
        """The phase of some events; null where none is marked, and for rows below 0."""
        return pick(self.names, np.where(rows >= 0, self.phase[rows], -1))


@dataclass(frozen=True)
class Names:
    """What the places of events are called: each name once, and per event which of them it has."""

    frames: pl.DataFrame  # `file, line, function`
    frame: Codes
    modules: pl.Series
    module: Codes
    phases: Phases
    events: pl.DataFrame  # of the trace: names and operators

    def of(self, rows: IntArray) -> pl.DataFrame:
        """The places of some events: the columns of `PLACE`."""
        return self.frames[self.frame[rows]].with_columns(
            module=pick(self.modules, self.module[rows].astype(np.int64)),
            op=pick(self.events["name"], row_numbers(self.events["op"][rows])),
            phase=self.phases.of(rows),
        )

    def where(self, event: int) -> Place:
        """The place of one event."""
        op = self.events["op"][event]
        file, line, function = self.frames.row(int(self.frame[event]))
        return Place(
            file=file,
            line=line,
            function=function,
            module=self.modules[int(self.module[event])],
            op=None if op is None else self.events["name"][op],
            phase=self.phases.names[int(self.phases.phase[event])],
        )


@kept
def names_of_places(trace: RankTrace) -> Names:
    """File, line, function, module, operator and phase of every event; null where the trace does not say.

    File, line and function are those of the innermost Python function in the user's own code, which a trace holds that
    was captured with stacks; where all functions are libraries', of the innermost library outside of torch. The profiler
    names the line at which a function begins; only functions that were running already when it started show the line
    that was being run. Of old files, which hold no Python functions, the call stack of the operator is taken.
    """
    events, at = trace.events, trace.places
    modules, module = numbered(at.module)
    frames, frame = _frames(trace)
    return Names(
        frames,
        frame.astype(np.int32),
        module_names(pick(events["name"], modules)),
        module.astype(np.int32),
        marked_phases(trace),
        events,
    )


@kept
def marked_phases(trace: RankTrace) -> Phases:
    """What `names_of_places` holds of phases, for who needs nothing else."""
    rows, phase = numbered(trace.places.phase)
    return Phases(pick(trace.events["name"], rows).str.strip_prefix(PHASE), phase.astype(np.int32))


def place_names(trace: RankTrace) -> pl.DataFrame:
    """One row per event: `file, line, function, module, op, phase`; see `names_of_places`."""
    return names_of_places(trace).of(np.arange(trace.events.height))


def _frames(trace: RankTrace) -> tuple[pl.DataFrame, IntArray]:
    """`file, line, function` of each Python function that is a place, and which of them each event has."""
    rows, which = numbered(trace.places.frame)
    texts = pick(trace.events["name"], rows)
    if rows[:1].tolist() == [-1]:
        stacks, row_of = _stack_frames(trace)
        which = np.where(trace.places.frame >= 0, which, len(rows) + row_of)
        texts = texts.append(stacks)
    return frame_parts(texts), which


def where(trace: RankTrace, event: int) -> Place:
    """The place of one event."""
    return names_of_places(trace).where(event)


def places_of(trace: RankTrace, events: pl.Series) -> pl.DataFrame:
    """The places of some events, one row each, in their order: the columns of `PLACE`."""
    return names_of_places(trace).of(row_numbers(events))


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
