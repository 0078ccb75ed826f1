"""Graphs that were captured while a trace was recorded: each one's launching calls, in order, of which none ran.

A capture lasts from `…StreamBeginCapture` to `…StreamEndCapture` of a thread. AMD writes the kernel's name, grid and block
on the launching call; CUDA writes none, so that there the order of the calls and what they launch is all that is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.trace.kinds import CALLS, Kind, is_kind
from pyrometer.trace.naming.patterns import MEMORY_SITE, begins_capture, ends_capture, is_launch_site
from pyrometer.trace.rows import IntArray
from pyrometer.trace.trace import RankTrace


class Node(NamedTuple):
    """What one launching call puts into a graph, or one piece of work that a graph ran."""

    kind: str  # kernel, memcpy or memset
    name: str | None = None  # of a kernel, where it is known
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None


class Capture(NamedTuple):
    """One captured graph."""

    label: str  # the innermost annotation around its capture, such as `capture_32_DECODE`; may be empty
    sites: IntArray  # launching calls, rows of `events`
    nodes: list[Node]  # what each of them launches


def find_captures(trace: RankTrace) -> list[Capture]:
    """The graphs that were captured, in order; those without a launch are left out."""
    if not trace.mask(is_kind(*CALLS) & begins_capture()).any():
        return []
    calls = trace.of_kind(*CALLS)
    begins, ends = calls.filter(begins_capture()), calls.filter(ends_capture())
    sites = _sites(trace, calls)
    captures = []
    for track, start, row in begins.select("track", "end_ns", "event").iter_rows():
        closing = ends.filter((pl.col("track") == track) & (pl.col("start_ns") >= start))["start_ns"].min()
        inside = sites.filter(
            (pl.col("track") == track) & (pl.col("start_ns") >= start) & (pl.col("start_ns") < closing)
        )
        if closing is not None and inside.height:
            captures.append(
                Capture(_label(trace, row), inside["event"].to_numpy().astype(np.int64), _nodes(inside))
            )
    return captures


def _sites(trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """Launching calls; of a runtime call and the driver call within it only the outer one."""
    sites = calls.filter(is_launch_site())
    inner = sites["parent"].is_in(sites["event"].cast(pl.Int32).implode()).fill_null(value=False)
    named = trace.tables["launched"] if "launched" in trace.tables else pl.DataFrame()
    sites = sites.filter(~inner)
    if not named.height:
        return sites.with_columns(kernel=pl.lit(None, pl.String), grid=None, block=None)
    return sites.join(named, on="event", how="left", maintain_order="left")


def _nodes(sites: pl.DataFrame) -> list[Node]:
    rows = sites.select("name", "kernel", "grid", "block").iter_rows()
    return [
        Node(_kind(name, kernel), kernel, tuple(grid) if grid else None, tuple(block) if block else None)
        for name, kernel, grid, block in rows
    ]


def _kind(call: str, kernel: str | None) -> str:
    """What a call launches, by its own name."""
    copies = None if kernel else MEMORY_SITE.search(call)
    return Kind.KERNEL.value if copies is None else copies[1].lower()


def _label(trace: RankTrace, row: int) -> str:
    marks = (trace.events["kind"] == Kind.USER_ANNOTATION.value).to_numpy()
    mark = int(trace.nearest(marks)[row])
    return trace.events["name"][mark] if mark >= 0 else ""
