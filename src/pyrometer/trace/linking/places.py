"""Where in the user's program an event belongs: source line, module, phase; backward work through its forward operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pyrometer.trace.kinds import is_annotation, is_function
from pyrometer.trace.linking.backward import forward_of, is_backward
from pyrometer.trace.linking.nearest import nearest
from pyrometer.trace.naming.frames import frame_kinds
from pyrometer.trace.naming.patterns import is_module, is_phase, is_step_mark
from pyrometer.trace.rows import IntArray, Mask, distinct, row_numbers
from pyrometer.trace.sorts import Sorts


@dataclass(frozen=True)
class Places:
    """Rows of `events`, one per event; -1 where nothing is known."""

    frame: IntArray  # innermost Python function in the user's own code; where there is none, in a library
    module: IntArray  # innermost nn.Module call
    phase: IntArray  # innermost phase annotation
    forward: IntArray  # the forward operator behind a backward one, and behind what that runs
    backward: IntArray  # the innermost operator of the backward pass at or above the event
    stack: IntArray  # the innermost operator that names its own call stack, in files without Python functions


def find_places(events: pl.DataFrame, ops: pl.DataFrame, parent: IntArray, sorts: Sorts) -> Places:
    """Find the places of all events of one rank; `events` is linked, and `parent` what led to each of them."""
    depth = row_numbers(events["depth"])
    direct = forward_of(ops, events["start_ns"].to_numpy())
    source = nearest(parent, direct >= 0)
    forward = np.where(source >= 0, direct[source], -1)
    backward = nearest(parent, is_backward(events, ops))

    def place(wanted: Mask) -> IntArray:
        found = nearest(parent, wanted)
        return through_forward(found, depth, source, forward)

    user, library = _frames(events)
    frame = place(user)
    if library.any() and (frame < 0).any():
        frame = np.where(frame >= 0, frame, place(library))
    marks = sorts.mask(is_phase())
    phase = nearest(parent, marks)
    return Places(
        frame=frame,
        module=place(module_calls(sorts)),
        phase=_across_threads(phase, np.flatnonzero(marks), backward, events, nearest(parent, parent < 0)),
        forward=forward,
        backward=backward,
        stack=place(_with_stack(events, ops)),
    )


def through_forward(found: IntArray, depth: IntArray, source: IntArray, forward: IntArray) -> IntArray:
    """Places of backward work: what lies within it, or else what its forward operator lies in.

    What encloses a backward operator is only the call of `backward()`, and says nothing about the operator. What runs
    within it, such as the `backward` of the user's own autograd function or a recomputed module, is its place.

    Args:
        found: the place of each event by enclosure, -1 where there is none.
        depth: number of ancestors.
        source: the innermost backward operator at or above each event that has a forward operator, or -1.
        forward: that forward operator, or -1.
    """
    behind = np.where(forward >= 0, found[forward], -1)
    outside = (found < 0) | (depth[found] < depth[source])
    return np.asarray(np.where((behind >= 0) & outside, behind, found), np.int64)


def module_calls(sorts: Sorts) -> Mask:
    """Calls of modules; where the capture named them itself, only those, so that no call counts twice."""
    calls = sorts.mask(is_module())
    named = calls & sorts.mask(is_annotation())
    return named if named.any() else calls


def _frames(events: pl.DataFrame) -> tuple[Mask, Mask]:
    """Python functions of the user, and of libraries other than torch and Python's own.

    Libraries that lie around our own functions only started us, and so did the user's functions around those that run the step:
    they say nothing about the program.
    """
    functions = events.filter(is_function()).select("event", "name")
    kinds = frame_kinds(functions["name"])
    placed = functions.join(kinds, on="name", how="inner")
    user, library = np.zeros(events.height, bool), np.zeros(events.height, bool)
    user[placed.filter("is_user")["event"].to_numpy()] = True
    library[placed.filter("is_library")["event"].to_numpy()] = True
    for mask, inner in ((library, "is_ours"), (user, "runs_steps")):
        if len(rows := placed.filter(inner)["event"].to_numpy()):
            mask[_enclosing(row_numbers(events["parent"]), rows)] = False
    return user, library


def _enclosing(parent: IntArray, rows: IntArray) -> IntArray:
    """All events that lie around any of the events."""
    around = np.zeros(len(parent), bool)
    outer = parent[rows]
    while (outer := distinct(outer[outer >= 0])).size:
        outer = outer[~around[outer]]
        around[outer] = True
        outer = parent[outer]
    return np.flatnonzero(around)


def _with_stack(events: pl.DataFrame, ops: pl.DataFrame) -> Mask:
    """Operators that name their call stack; that of a step's mark is only where the profiler was told of it."""
    event = ops.filter(pl.col("call_stack").fill_null("") != "")["event"]
    marks = events.select("event", "name")[event.to_numpy()].filter(is_step_mark())
    held = np.zeros(events.height, bool)
    held[event.to_numpy()] = True
    held[marks["event"].to_numpy()] = False
    return held


def _across_threads(
    phase: IntArray, marks: IntArray, backward: IntArray, events: pl.DataFrame, root: IntArray
) -> IntArray:
    """Backward work on a thread of autograd belongs to the phase that is open on the thread which waits for it."""
    lost = np.flatnonzero((phase < 0) & (backward >= 0))
    if not len(lost) or not len(marks):
        return phase
    start, end = events["start_ns"].to_numpy(), events["end_ns"].to_numpy()
    moment = start[root[lost]]
    last = np.searchsorted(start[marks], moment, side="right") - 1
    open_mark = np.where(last >= 0, marks[np.maximum(last, 0)], -1)
    found = np.array(phase, np.int64)
    found[lost] = np.where((open_mark >= 0) & (end[open_mark] > moment), open_mark, -1)
    return found
