"""Joining a trace in which graphs were launched to one in which they were captured.

A launch of a graph runs hundreds of kernels, and nothing beside them says which operators they are of: these ran once,
when the graph was captured. Joined, every launch gets its own copies of the operators of its capture, and of the
user's functions and the modules around them, as events of kind `captured`: they begin with the launching call and
take no time, so that the time of the host stays what it was, while kernels have operators, shapes, lines and modules.

Of captures that equally explain a launch (another layer, another batch size) those are taken whose operators and shapes are the
same, in turns where the launches come out even. Where they differ, the smallest batch is taken that holds the tokens of which the
engine's annotation of the step speaks; without one no operator is named, and the note counts that.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import polars as pl

from pyrometer.quantity import counted
from pyrometer.trace import schema
from pyrometer.trace.graphs.captures import Capture, Node, find_captures
from pyrometer.trace.graphs.graft import Graft, graft
from pyrometer.trace.graphs.matching import match
from pyrometer.trace.kinds import CALLS
from pyrometer.trace.linking.engines import served
from pyrometer.trace.naming.patterns import is_graph_launch
from pyrometer.trace.rows import IntArray, row_numbers
from pyrometer.trace.trace import RankTrace, Results


@dataclass(frozen=True)
class Launch:
    """One launch of a graph."""

    call: int  # row of `events`
    work: IntArray  # rows of `events`, in the order in which the graph was built where that is known, else of start
    nodes: tuple[Node, ...]


def join_capture(trace: RankTrace, capture: RankTrace) -> RankTrace:
    """Give the kernels of a trace's graphs the operators that a capture recorded.

    Args:
        trace: in which graphs were launched.
        capture: in which they were captured; may be the same trace.

    Returns:
        The same trace with events of kind `captured`, a table `captured` and a note of what could be joined; without graphs
        of which `capture` explains any, the trace itself.
    """
    launches, captures = find_launches_of_graphs(trace), find_captures(capture)
    alike: dict[tuple[tuple[Node, ...], int], list[Launch]] = defaultdict(list)
    tokens = _tokens(trace, launches)
    for launch in launches:
        alike[launch.nodes, tokens[launch.call]].append(launch)
    grafts, num_ambiguous = [], 0
    for (nodes, size), group in alike.items():
        choices, ambiguous = _choices(capture, captures, nodes, size)
        num_ambiguous += ambiguous * len(group)
        in_turns = len(choices) > 0 and len(group) % len(choices) == 0
        for i, launch in enumerate(group):
            if choices:
                chosen, places = choices[i % len(choices) if in_turns else 0]
                sites = np.where(np.array(places) >= 0, chosen.sites[places], -1)
                grafts.append(Graft(launch.call, launch.work, sites, with_places=in_turns))
    if not grafts and not num_ambiguous:
        return trace
    joined = (
        graft(trace, capture, grafts)
        if grafts
        else replace(
            trace,
            tables={**trace.tables, "captured": schema.empty(schema.CAPTURED)},
            results=Results(),
            known_links=None,
        )
    )
    note = _note(joined, capture, sum(len(launch.work) for launch in launches), num_ambiguous)
    return replace(joined, info=msgspec.structs.replace(joined.info, notes=[*joined.info.notes, note]))


def find_launches_of_graphs(trace: RankTrace) -> list[Launch]:
    """Calls that launched graphs, and what these ran."""
    calls = trace.chosen(trace.of_kind(*CALLS), is_graph_launch())["event"].cast(pl.Int32)
    work = (
        trace.device_work.filter(pl.col("parent").is_in(calls.implode()))
        .join(
            trace.tables["kernels"].select("event", "grid", "block", "graph_node"),
            on="event",
            how="left",
            maintain_order="left",
        )
        .with_columns(built=pl.col("graph_node").count().over("parent") == pl.len().over("parent"))
        .sort("parent", pl.when("built").then("graph_node").otherwise("start_ns"), maintain_order=True)
    )
    launches = []
    for (call,), rows in work.group_by("parent", maintain_order=True):
        nodes = tuple(
            Node(kind, name if kind == "kernel" else None, _triple(grid), _triple(block))
            for kind, name, grid, block in rows.select(
                pl.col("kind").cast(pl.String), "name", "grid", "block"
            ).iter_rows()
        )
        launches.append(Launch(int(call), rows["event"].to_numpy().astype(np.int64), nodes))
    return launches


def _triple(sizes: Sequence[int] | None) -> tuple[int, ...] | None:
    return tuple(sizes) if sizes else None


def _choices(
    capture: RankTrace, captures: Sequence[Capture], nodes: tuple[Node, ...], tokens: int
) -> tuple[list[tuple[Capture, list[int]]], bool]:
    """The captures that explain most of a launch, with the place of each piece of work; whether they contradict each other."""
    found = [(one, match(one.nodes, nodes)) for one in captures]
    most = max((len(places) - places.count(-1) for _, places in found), default=0)
    best = [(one, places) for one, places in found if most and len(places) - places.count(-1) == most]
    said = [_said(capture, one, places) for one, places in best]
    if tokens:  # a graph runs the smallest size that holds them
        sizes = [_size(arguments) for arguments in said]
        fitting = min((size for size in sizes if size >= tokens), default=0)
        best = [one for one, size in zip(best, sizes, strict=True) if size == fitting] or best
        said = [one for one, size in zip(said, sizes, strict=True) if size == fitting] or said
    contradict = any(arguments != said[0] for arguments in said[1:])
    return ([] if contradict else best), contradict


def _tokens(trace: RankTrace, launches: Sequence[Launch]) -> dict[int, int]:
    """How many new tokens the engine says that the step of each launch had; 0 where nothing says so."""
    steps = served(trace.steps, trace.events)
    row = row_numbers(trace.events["step"])
    return {
        launch.call: steps[row[launch.call]].prefill.queries + steps[row[launch.call]].decode.queries
        if steps and row[launch.call] >= 0
        else 0
        for launch in launches
    }


def _size(arguments: Sequence[tuple[object, ...]]) -> int:
    """The batch that a capture was made for: the first size of most operators' first tensors."""
    first = [re.match(r"\[\s*\[\s*(\d+)", str(dims)) for _, dims, _ in arguments]
    counts = Counter(int(found[1]) for found in first if found)
    return counts.most_common(1)[0][0] if counts else 0


def _said(capture: RankTrace, one: Capture, places: Sequence[int]) -> list[tuple[object, ...]]:
    """Operator and shapes of each piece of work, according to a capture."""
    sites = one.sites[[place for place in places if place >= 0]]
    ops = capture.events["op"].gather(sites)
    shapes = capture.tables["ops"].select(
        pl.col("event").cast(pl.Int32).alias("op"), "input_dims", "input_types"
    )
    names = pl.DataFrame({"op": ops, "name": capture.events["name"].gather(ops.cast(pl.UInt32))})
    return names.join(shapes, on="op", how="left", maintain_order="left").drop("op").rows()


def explained_work(trace: RankTrace) -> pl.DataFrame:
    """The device work of graphs whose operators are known from their capture."""
    if "captured" not in trace.tables:
        return trace.device_work.clear()
    return trace.device_work.join(trace.tables["captured"], on="event", how="semi")


def _note(joined: RankTrace, capture: RankTrace, num_work: int, num_ambiguous: int) -> str:
    source = "this file" if capture.info.path == joined.info.path else capture.info.path
    text = f"{explained_work(joined).height} of {num_work} kernels, copies and fills that graphs ran have the operators "
    text += f"and shapes that {source} holds of their capture"
    if num_ambiguous:
        text += f"; for {counted(num_ambiguous, 'launch')} it holds several captures with the same kernels and other shapes: record one batch size"
    return text
