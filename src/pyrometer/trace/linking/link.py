"""Linking: from tables of events to who called whom, who launched what, and which step it was for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import DEVICE_WORK, HOST, Kind, is_op, kind_mask
from pyrometer.trace.linking.launches import Launches, find_launches
from pyrometer.trace.linking.nearest import nearest
from pyrometer.trace.linking.steps import find_steps, step_of
from pyrometer.trace.linking.tree import Pieces, depth_of, nest
from pyrometer.trace.rows import IntArray, Mask, nullable, positions, row_numbers
from pyrometer.trace.sorts import Sorts


@dataclass(frozen=True)
class Links:
    """What linking found."""

    launches: Launches
    columns: pl.DataFrame  # the columns of `schema.LINKS`, one row per event
    steps: pl.DataFrame  # `schema.STEPS`
    num_orphans: int  # device work whose launch is not in the trace
    num_nesting_violations: int  # host events that overlap another without nesting
    pieces: Pieces  # of the time of host threads: which event was the innermost one, a row of `events`
    above: (
        IntArray  # what led to each event: its parent, or of a graph's work what was captured; -1 for nothing
    )


def link(tables: Mapping[str, pl.DataFrame], sorts: Sorts, steps: pl.DataFrame | None = None) -> Links:
    """Link the events of one rank; without steps that are known already, these are found first."""
    events = tables["events"]
    start, end = events["start_ns"].to_numpy(), events["end_ns"].to_numpy()
    host = np.flatnonzero(kind_mask(events["kind"], *HOST))
    tree = nest(events["track"].to_numpy()[host].astype(np.int64), start[host], end[host])
    parent = np.full(len(start), -1, np.int64)
    parent[host] = np.where(tree.parent >= 0, host[tree.parent], -1)
    depth = np.zeros(len(start), np.int64)
    depth[host] = tree.depth
    own = events["dur_ns"].to_numpy().copy()
    own[host] = tree.self_ns
    launches = find_launches(events)
    parent[launches.work] = launches.call
    depth[launches.work] = depth[launches.call] + 1
    above = parent
    if "captured" in tables:
        above = _with_captured(parent, kind_mask(events["kind"], Kind.CAPTURED), tables["captured"])
        depth = depth_of(above)
    op = nearest(above, sorts.mask(is_op()))
    op[launches.work] = np.where(op[launches.work] >= 0, op[launches.work], launches.op)
    work = kind_mask(events["kind"], *DEVICE_WORK)

    steps = find_steps(events, launches) if steps is None else steps
    columns = pl.DataFrame(
        {
            "parent": nullable(parent),
            "depth": depth,
            "self_ns": own,
            "op": nullable(op),
            "step": _step_of_each(steps, start, launches),
        },
    ).cast(schema.dtypes(schema.LINKS))  # type: ignore[arg-type]
    pieces = tree.pieces._replace(event=host[tree.pieces.event])
    return Links(launches, columns, steps, int((work & (parent < 0)).sum()), tree.violations, pieces, above)


def with_steps(links: Links, events: pl.DataFrame, steps: pl.DataFrame) -> Links:
    """The same links of the same events with other steps."""
    step = _step_of_each(steps, events["start_ns"].to_numpy(), links.launches)
    columns = links.columns.with_columns(step=step.cast(links.columns["step"].dtype))
    return replace(links, columns=columns, steps=steps)


def reordered(links: Links, events: pl.DataFrame, order: IntArray) -> Links:
    """The same links of the same events in another order, in which those of the host are in the order that they were in.

    Args:
        links: of the events as they were.
        events: as they are now; device work may have other bounds.
        order: the row in which each of them was.
    """
    place = positions(order, len(order))  # the last place is that of none
    parent, op = (nullable(place[row_numbers(links.columns[name])[order]]) for name in ("parent", "op"))
    is_host = kind_mask(events["kind"], *HOST)
    own = np.where(is_host, links.columns["self_ns"].to_numpy()[order], events["dur_ns"].to_numpy())
    columns = links.columns[order].with_columns(parent=parent, op=op, self_ns=pl.Series(own))
    rows = np.argsort(place[links.launches.work])
    return replace(
        links,
        launches=Launches(*(place[column[rows]] for column in links.launches)),
        columns=columns.cast(schema.dtypes(schema.LINKS)),  # type: ignore[arg-type]
        pieces=links.pieces._replace(event=place[links.pieces.event]),
        above=place[links.above[order]],
    )


def _step_of_each(steps: pl.DataFrame, start: IntArray, launches: Launches) -> pl.Series:
    """The step that each event is for: device work is for that of its launch."""
    step = step_of(steps, start)
    step[launches.work] = step[launches.call]
    return nullable(step)


def _with_captured(parent: IntArray, copies: Mask, captured: pl.DataFrame) -> IntArray:
    """What led to each event, with what was captured; of that itself it is the parent, too."""
    above = parent.copy()
    event, led = captured["event"].to_numpy(), captured["above"].to_numpy()
    above[event] = led
    copied = copies[event]
    parent[event[copied]] = led[copied]
    return above
