"""How many rows of their tables the steps look up."""

from __future__ import annotations

from collections import defaultdict

from pyrometer.dataflow.graph import Call, FlowGraph, Ref
from pyrometer.dataflow.looking import LOOKUPS
from pyrometer.dataflow.report import TableLookup

LARGE_TABLE = 1_000
"""Rows of a table that is told."""


def lookups(graph: FlowGraph) -> list[TableLookup]:
    """Large tables, each with the rows that the steps look up, the largest first."""
    calls: dict[int, list[Call]] = defaultdict(list)
    for call in graph.calls:
        if not call.backward and call.name in LOOKUPS and _is_followed(call):
            calls[graph.values[call.arguments[0].value].storage].append(call)
    told = [_lookup(graph, found) for found in calls.values()]
    return sorted(
        (each for each in told if each.rows >= LARGE_TABLE), key=lambda each: -each.rows * each.width
    )


def _is_followed(call: Call) -> bool:
    return isinstance(call.argument(0), Ref) and isinstance(call.argument(1), Ref)


def _lookup(graph: FlowGraph, calls: list[Call]) -> TableLookup:
    table = graph.values[calls[0].arguments[0].value]
    distinct = sum(graph.values[call.arguments[1].value].distinct or 0 for call in calls)
    gradients = [
        call.seconds
        for call in graph.calls
        if call.backward and any(graph.values[value].shape == table.shape for value in call.writes)
    ]
    return TableLookup(
        where=calls[0].where,
        rows=table.shape[0],
        width=table.shape[-1],
        looked_up=distinct / max(graph.num_steps, 1),
        trained=table.is_leaf,
        gradient_share=graph.share(sum(gradients)) if table.is_leaf else 0.0,
    )
