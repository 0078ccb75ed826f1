"""The calls of all steps merged by name path: one node per distinct path, with its times in each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import DEVICE_WORK, Kind, is_kind
from pyrometer.trace.linking.tree import depth_of
from pyrometer.trace.naming.patterns import MODULE, is_module, is_step_mark
from pyrometer.trace.program.paths import merge_paths
from pyrometer.trace.program.rollup import roll_up
from pyrometer.trace.rows import IntArray, mask_of, row_numbers
from pyrometer.trace.trace import RankTrace


@dataclass(frozen=True)
class CallTree:
    """Nodes in order of their depth; times in ns, one column per step."""

    names: list[str]
    kinds: list[str]  # call or device
    parent: IntArray  # -1 at the roots
    host: IntArray  # time in the calls, with all that they call `[nodes, steps]`
    device: IntArray  # device work launched at or below the node `[nodes, steps]`
    calls: IntArray  # `[nodes, steps]`
    children: dict[int, list[int]]  # in order of first appearance; those of -1 are the roots

    def path(self, node: int) -> list[str]:
        """Names from the outermost."""
        names: list[str] = []
        while node >= 0:
            names.append(self.names[node])
            node = int(self.parent[node])
        return names[::-1]


def build_call_tree(trace: RankTrace) -> CallTree:
    """Merge the calls: operators, annotations and modules, and device work below the operator that launched it.

    Runtime calls and other Python functions are passed over. Without steps the whole trace counts as one; with steps,
    what lies outside of them is left out.
    """
    events = trace.events
    names = _comparable_names(events)
    is_device = mask_of(events, is_kind(*DEVICE_WORK))
    host = mask_of(events, (is_kind(Kind.CPU_OP, Kind.USER_ANNOTATION) | is_module()) & ~is_step_mark())
    step = row_numbers(events["step"]) if trace.steps.height else None
    if step is not None:
        host, is_device = host & (step >= 0), is_device & (step >= 0)
    above = _node_above(trace, host)
    rows = np.flatnonzero(host | is_device)
    nowhere = np.full(len(above), -1, np.int64)
    merged = merge_paths(rows, names.rank("dense").to_numpy().astype(np.int64), above, nowhere)
    path, parent = merged.of_event[rows], merged.parent
    number = len(parent)
    when = np.zeros(len(rows), np.int64) if step is None else step[rows]
    width = max(trace.steps.height, 1)
    dur, on_device = events["dur_ns"].to_numpy()[rows], is_device[rows]
    device = _table(path, when, np.where(on_device, dur, 0), (number, width))
    device = roll_up(device, parent, depth_of(parent))
    first = np.full(number, -1, np.int64)
    first[path[::-1]] = rows[::-1]  # rows are in order of start
    return CallTree(
        names=names.gather(first).to_list() if number else [],
        kinds=["device" if flag else "call" for flag in is_device[first].tolist()] if number else [],
        parent=parent,
        host=_table(path, when, np.where(on_device, 0, dur), (number, width)),
        device=device,
        calls=_table(path, when, np.ones(len(rows), np.int64), (number, width)),
        children=_children(parent, first),
    )


def _comparable_names(events: pl.DataFrame) -> pl.Series:
    """Names without what differs from run to run: hashes of graphs, numbers of steps, the class of the loader."""
    name = pl.col("name").fill_null("")
    cleaned = name.str.replace(r"CompiledFxGraph \w+", "CompiledFxGraph")
    numbered = cleaned.str.replace_all(r"\d+", "#")
    return events.select(
        pl.when(name.str.starts_with("enumerate(DataLoader)#"))
        .then(pl.lit("enumerate(DataLoader)#__next__"))
        .when((pl.col("kind") == Kind.USER_ANNOTATION.value) & ~name.str.starts_with(MODULE))
        .then(numbered)
        .otherwise(cleaned)
        .alias("name")
    ).to_series()


def _node_above(trace: RankTrace, host: npt.NDArray[np.bool_]) -> IntArray:
    """The enclosing or launching node of each event, as a row; -1 at the roots."""
    nearest = trace.nearest(host)
    parent = trace.parent
    op = row_numbers(trace.events["op"])
    above = np.where(parent >= 0, nearest[parent], -1)
    by_id = (above < 0) & (op >= 0) & (op != np.arange(len(op)))
    return np.where(by_id, nearest[op], above)


def _table(path: IntArray, when: IntArray, amount: IntArray, shape: tuple[int, int]) -> IntArray:
    table = np.zeros(shape, np.int64)
    np.add.at(table, (path, when), amount)
    return table


def _children(parent: IntArray, first: IntArray) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for node in np.argsort(first, kind="stable").tolist():
        children.setdefault(int(parent[node]), []).append(node)
    return children
