"""Operators that compute with numbers next to zero, which processors do in microcode."""

from __future__ import annotations

from collections import defaultdict

from pyrometer.dataflow.graph import Call, FlowGraph
from pyrometer.dataflow.report import Subnormal

MIN_SHARE = 0.02
"""Of the operators' time of a step: less is not told."""


def subnormal(graph: FlowGraph) -> list[Subnormal]:
    """Operators that read or write such numbers, by line, the dearest first."""
    groups: dict[tuple[str | None, int | None], list[Call]] = defaultdict(list)
    for call in graph.calls:
        if not graph.is_view(call) and _share(graph, call) > 0:
            groups[call.where.file, call.where.line].append(call)
    told = [_fact(graph, calls) for calls in groups.values()]
    return sorted((fact for fact in told if fact.share >= MIN_SHARE), key=lambda fact: -fact.share)


def _share(graph: FlowGraph, call: Call) -> float:
    return max((graph.values[number].subnormal_share for number in (*call.reads, *call.writes)), default=0.0)


def _fact(graph: FlowGraph, calls: list[Call]) -> Subnormal:
    seconds = sum(call.seconds for call in calls)
    dearest = max(calls, key=lambda call: call.seconds)
    return Subnormal(
        where=dearest.where,
        operators=list(dict.fromkeys(call.name for call in calls))[:5],
        subnormal_share=max(_share(graph, call) for call in calls),
        calls_per_step=len(calls) / max(graph.num_steps, 1),
        seconds_per_step=seconds / max(graph.num_steps, 1),
        share=graph.share(seconds),
    )
