"""What operators take when nothing comes in between."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable

from pyrometer.dataflow.graph import Call, FlowGraph


def steady(graph: FlowGraph) -> None:
    """Give each call the shortest duration that it had in any of the steps.

    Other programs lengthen some calls of each step, and most of all the short ones of several threads; the same call is one of the
    same operator, at the same line, on the same shapes, as the same of several such in its step.
    """
    times: Counter[Hashable] = Counter()
    same: dict[Hashable, list[Call]] = defaultdict(list)
    for call in graph.calls:
        shapes = tuple(graph.values[value].shape for value in (*call.reads, *call.writes))
        kind = (call.name, call.where.file, call.where.line, call.backward, shapes)
        times[call.step, kind] += 1
        same[kind, times[call.step, kind]].append(call)
    for calls in same.values():
        shortest = min(call.seconds for call in calls)
        for call in calls:
            call.seconds = shortest
    graph.step_seconds = [0.0] * graph.num_steps
    for call in graph.calls:
        graph.step_seconds[call.step] += call.seconds
