"""What bounds a run: the resource whose improvement would make it shortest, by replay and not by shares of its time.

Each resource is made free, with everything else as it depends on it: work that is hidden behind other work wins nothing,
however much of the time it runs. A run is bound by a resource that would make it 1.15× faster were it free; of several, by
the one of which a change helps most that can be made. Kernels and the host only get faster, and are tried twice as fast;
data, copies, communication and waits can be hidden or left out, and count as free. The gains of `recoverable` are tried in
the same way. Where no resource helps that much, the run is balanced: two at least are as long as each other. Where nothing in
the trace explains most of the critical path, that is said, and no resource is named.

With a device there are its kernels (`compute`), `communication`, `copies` with fills, waiting for it
(`synchronisation`), `data`, and the `host`: operators, Python, runtime calls, launches and their delays, and host time in
which nothing was recorded. Without one there are `communication`, `data`, `operators`, `python`, and what is
`unrecorded`; there Python that an operator runs, such as a compiled function, is the operator's, as in the breakdown.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.analysis.what_if import bases, replayed_span
from pyrometer.trace.dependencies.changes import Scales, unchanged
from pyrometer.trace.dependencies.graph import Graph, dependencies
from pyrometer.trace.dependencies.path import CLASSES, class_sums, event_classes, path_pieces
from pyrometer.trace.dependencies.select import scales_of
from pyrometer.trace.kinds import Kind
from pyrometer.trace.records.gains import HELPS, Bounds, FreeResource, Resource, bounds_of
from pyrometer.trace.rows import IntArray, among, row_numbers
from pyrometer.trace.trace import RankTrace

WORK: frozenset[Resource] = frozenset({"compute", "host", "operators", "python", "unrecorded"})
"""What can only be made faster; all else can be hidden behind it, or left out."""


OF_DEVICES: Mapping[Resource, tuple[str, ...]] = {
    "compute": ("compute",),
    "communication": ("communication",),
    "copies": ("memcpy", "memset"),
    "synchronisation": ("sync",),
    "data": ("data",),
    "host": ("launch", "runtime", "host_op", "python", "untraced"),
}
"""The classes of the critical path that are each resource's."""

OF_HOSTS: Mapping[Resource, tuple[str, ...]] = {
    "communication": ("communication",),
    "data": ("data",),
    "operators": ("launch", "runtime", "host_op", "sync", "memcpy"),
    "python": ("python",),
    "unrecorded": ("untraced",),
}
"""The same without device work."""


OF_KIND: Mapping[Resource, str] = {"synchronisation": "sync", "unrecorded": "gap"}
"""Resources that are what a kind of change is about; see `pyrometer.trace.dependencies.select.KINDS`."""


@analysis("bounds")
def bounds(trace: RankTrace) -> Bounds:
    """What bounds the run: what would make it shortest if it were faster, by replay."""
    span, _ = bases(trace)
    if not span:
        return Bounds()
    graph = dependencies(trace)
    pieces = path_pieces(trace)
    classes = _classes(trace, graph)
    code, own = pieces["class"].to_physical().to_numpy(), np.append(classes, -1)[row_numbers(pieces["event"])]
    is_operator = (code == CLASSES.index("python")) & (own == CLASSES.index("host_op"))
    ns = (pieces["end_ns"] - pieces["start_ns"]).to_numpy()
    on_path = class_sums(np.where(is_operator, CLASSES.index("host_op"), code), ns)
    resources = OF_DEVICES if len(graph.device) else OF_HOSTS
    found = [
        _freed(trace, graph, resource, span)
        if any(on_path[name] for name in names) or resource == "synchronisation"
        else FreeResource(resource=resource, free_ratio=1.0, changed_ratio=1.0)
        for resource, names in resources.items()
    ]
    return bounds_of(found, on_path["idle"] / span)


def _freed(trace: RankTrace, graph: Graph, resource: Resource, span: int) -> FreeResource:
    free = replayed_span(graph, _scales(trace, graph, resource, 0.0)) / span
    changed = (1 + free) / 2 if resource in WORK else free  # as good as any figure for what helps too little
    if resource in WORK and free * HELPS <= 1:
        changed = replayed_span(graph, _scales(trace, graph, resource, 0.5)) / span
    return FreeResource(resource=resource, free_ratio=free, changed_ratio=changed)


def _classes(trace: RankTrace, graph: Graph) -> IntArray:
    """The class of every event; without a device, what runs in Python within an operator is the operator's."""
    classes = event_classes(trace)
    if len(graph.device):
        return classes
    within = trace.nearest(trace.mask(pl.col("kind") == Kind.CPU_OP.value)) >= 0
    return np.where(within & (classes == CLASSES.index("python")), CLASSES.index("host_op"), classes)


def _scales(trace: RankTrace, graph: Graph, resource: Resource, keep: float) -> Scales:
    """What is left of each duration when a resource keeps this share of its time."""
    has_device = len(graph.device) > 0
    if resource == "data" or (resource == "communication" and not has_device):
        return scales_of(trace, "data" if resource == "data" else "collective", None, keep)
    if resource in OF_KIND:
        return scales_of(trace, OF_KIND[resource], None, keep)
    wanted = (OF_DEVICES if has_device else OF_HOSTS)[resource]
    chosen = among(_classes(trace, graph), np.array([CLASSES.index(name) for name in wanted]))
    waits = graph.waits.event
    scales = unchanged(trace.events.height)
    scales.event[chosen] = keep
    if resource == "host":
        scales.event[waits] = 1.0  # that the host waits is no work of its own
        return Scales(scales.event, gap=keep, launch=keep)
    return scales
