"""Operators that compute for all what is only read for a few.

From the last call to the first, each says which part of its arguments it needs for the part of its result that is needed. Only
readers of the forward pass count: the backward pass reads what the forward pass made because it made it.
"""

from __future__ import annotations

from collections import defaultdict

from pyrometer.dataflow.asking import asks, is_for_all
from pyrometer.dataflow.demand import Demand, together
from pyrometer.dataflow.graph import Call, FlowGraph
from pyrometer.dataflow.report import PartlyUsed
from pyrometer.place import Place

MIN_SHARE = 0.02
"""Of the operators' time of a step: less is not told."""

MOST_USED = 0.4
"""Share of a result that is read, above which little is computed for nothing."""

Spent = list[tuple[Call, Demand, float]]


def partly_used(graph: FlowGraph) -> list[PartlyUsed]:
    """What is computed for all, by the line that selects, the dearest first."""
    groups: dict[tuple[str | None, int | None], Spent] = defaultdict(list)
    for call, demand in _demanded(graph):
        if demand.share > MOST_USED or graph.is_view(call) or is_for_all(graph, call, demand):
            continue
        after = sum(graph.calls[other].seconds for other in graph.backward_of.get(call.number, ()))
        origin = graph.calls[demand.origin].where
        groups[origin.file, origin.line].append((call, demand, (1 - demand.share) * (call.seconds + after)))
    told = [_partly_used(graph, spent) for spent in groups.values()]
    return sorted((fact for fact in told if fact.share >= MIN_SHARE), key=lambda fact: -fact.share)


def _demanded(graph: FlowGraph) -> list[tuple[Call, Demand]]:
    """Calls of the forward pass of whose result a part is asked for."""
    asked = _asked_from_outside(graph)
    found = []
    for call in reversed(graph.calls):
        if call.backward or call.optimizer or not call.writes:
            continue
        demands = {number: together(asked[number]) for number in call.writes if asked[number]}
        for number, part in demands.items():
            for read, wanted in asks(graph, call, part, number):
                asked[read].append(wanted)
        if not demands:  # read by the backward pass alone, or by nobody
            for read in call.reads:
                asked[read].append(None)
        demand = next(iter(demands.values())) if len(demands) == 1 else None
        if demand is not None:
            found.append((call, demand))
    return found


def _asked_from_outside(graph: FlowGraph) -> list[list[Demand | None]]:
    """For each value what others than operators ask of it."""
    asked: list[list[Demand | None]] = [[] for _ in graph.values]
    for value in graph.values:
        if value.is_escaped or value.is_alive or value.is_leaf:
            asked[value.number].append(None)
        if value.base is not None:  # what shows or keeps memory that another call wrote asks for all of it
            asked[value.base].append(None)
    return asked


def _partly_used(graph: FlowGraph, spent: Spent) -> PartlyUsed:
    by_name: dict[str, float] = defaultdict(float)
    for call, _, seconds in spent:
        by_name[call.name] += seconds
    dearest, demand, _ = max(spent, key=lambda each: each[2])
    for number, rest in {each.origin: 1 - each.share for _, each, _ in spent}.items():
        for other in graph.backward_of.get(number, ()):
            by_name[graph.calls[other].name] += rest * graph.calls[other].seconds
    total = sum(by_name.values())
    selecting = graph.calls[demand.origin]
    return PartlyUsed(
        where=dearest.where if dearest.where.file is not None else Place(),
        selected=selecting.where,
        by=selecting.name,
        used=demand.share,
        operators=sorted(by_name, key=lambda name: -by_name[name])[:5],
        seconds_per_step=total / max(graph.num_steps, 1),
        share=graph.share(total),
    )
