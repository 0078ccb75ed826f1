"""Which events a change is about."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from pyrometer.trace.dependencies.changes import Scales, unchanged
from pyrometer.trace.dependencies.graph import Graph, dependencies
from pyrometer.trace.kinds import HOST, Kind, is_kind
from pyrometer.trace.naming.copy_names import copy_direction
from pyrometer.trace.naming.patterns import (
    is_blocking_call,
    is_communication,
    is_data_loading,
    is_host_communication,
    is_module,
)
from pyrometer.trace.rows import IntArray, Mask, among
from pyrometer.trace.trace import RankTrace

HOST_KINDS = [kind.value for kind in HOST]
CALL_KINDS = [Kind.RUNTIME.value, Kind.DRIVER.value]


def _all_of(*kinds: Kind) -> pl.Expr:
    return is_kind(*kinds)


EVENTS: dict[str, Callable[[], pl.Expr]] = {
    "kernel": lambda: _all_of(Kind.KERNEL, Kind.MEMSET),
    "copy": lambda: _all_of(Kind.MEMCPY),
    "collective": lambda: _all_of(Kind.KERNEL) & is_communication(),
    "call": lambda: _all_of(Kind.RUNTIME, Kind.DRIVER),
    "python": lambda: _all_of(Kind.PYTHON_FUNCTION),
    "host": lambda: _all_of(*HOST),
}
"""Kinds of change that are about events themselves: own time on the host, duration on a device."""

SUBTREES: dict[str, Callable[[], pl.Expr]] = {
    "op": lambda: _all_of(Kind.CPU_OP),
    "line": lambda: _all_of(Kind.PYTHON_FUNCTION),
    "module": is_module,
    "span": lambda: _all_of(Kind.USER_ANNOTATION),
    "data": is_data_loading,
}
"""Kinds of change that are about events with all that runs within them, and all device work that they launch."""

OTHERS = ("sync", "gap", "launch")
KINDS = (*EVENTS, *SUBTREES, *OTHERS)
WITHOUT_NAME = ("gap", "launch")


def scales_of(trace: RankTrace, kind: str, pattern: str | None, keep: float) -> Scales:
    """What a change of one kind leaves of each duration.

    Args:
        trace: one rank.
        kind: one of `KINDS`.
        pattern: regular expression on names; everything of the kind, if there is none.
        keep: share of the duration that remains.
    """
    graph = dependencies(trace)
    scales = unchanged(trace.events.height)
    named = pl.lit(value=True) if pattern is None else pl.col("name").str.contains(pattern)
    if kind == "sync":
        return _freed(trace, graph, named, scales, keep)
    if kind == "launch":
        launching = graph.device.call[graph.device.call >= 0]
        is_call = trace.mask(pl.col("kind").is_in(CALL_KINDS))
        launching = launching[is_call[launching]]
        scales.event[launching[~among(launching, graph.waits.event)]] = keep  # copies wait for themselves
        return Scales(scales.event, launch=keep)
    if kind == "gap":
        known = is_data_loading() if len(graph.device) else is_data_loading() | is_host_communication()
        scales.event[trace.mask(_all_of(Kind.USER_ANNOTATION) & ~known)] = keep
        return Scales(scales.event, gap=keep)
    chosen = trace.mask((EVENTS[kind] if kind in EVENTS else SUBTREES[kind])() & named)
    if kind == "collective" and not len(graph.device):
        chosen = trace.mask(is_host_communication() & named)
    if kind in SUBTREES or (kind == "collective" and not len(graph.device)):
        chosen = _with_subtree(trace, chosen, backward=kind in ("line", "module"))
    scales.event[chosen] = keep
    if kind == "copy":
        waits = graph.waits.event
        scales.event[waits[among(waits, graph.device.call[chosen[graph.device.event]])]] = keep
    return Scales(scales.event, gap=keep if kind == "host" and pattern is None else 1.0)


def _with_subtree(trace: RankTrace, chosen: Mask, *, backward: bool) -> Mask:
    found = trace.nearest(chosen)
    inside = np.asarray(found >= 0)
    if backward:
        forward = trace.places.forward
        inside |= np.where(forward >= 0, found[forward] >= 0, False)
    return inside


def _freed(trace: RankTrace, graph: Graph, named: pl.Expr, scales: Scales, keep: float) -> Scales:
    chosen = trace.mask(named & (is_blocking_call() | pl.col("kind").is_in(CALL_KINDS)))
    waits = waits_for_others(trace, graph)
    freed = waits[chosen[waits]]
    scales.event[freed] = keep
    return Scales(scales.event, freed=freed)


def waits_for_others(trace: RankTrace, graph: Graph) -> IntArray:
    """Calls that wait for work that they did not launch, as rows of `events`.

    A call that copies to the host and returns when the copy has arrived waits for all work before it, and is among them; one
    that waits for its own copy to a device only is not.
    """
    to_host = trace.mask(is_kind(Kind.MEMCPY) & (copy_direction() == "D2H"))
    reading = graph.device.call[to_host[graph.device.event]]
    waits = graph.waits.event
    return waits[~among(waits, graph.device.call) | among(waits, reading)]
