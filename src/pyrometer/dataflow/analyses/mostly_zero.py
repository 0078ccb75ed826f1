"""Dense products with matrices that hold next to nothing but zeros."""

from __future__ import annotations

from collections import defaultdict

from pyrometer.dataflow.graph import Call, FlowGraph
from pyrometer.dataflow.looking import MOSTLY, PRODUCTS, mask_of
from pyrometer.dataflow.report import MostlyZero

MASKED_OUT = 0.8
"""Share of an attention's places that its mask leaves out; a causal mask leaves out half, and fused attention skips these where it is told so."""

MIN_SHARE = 0.02
"""Of the operators' time of a step: less is not told."""


def mostly_zero(graph: FlowGraph) -> list[MostlyZero]:
    """Products with such an operand, by line, the dearest first.

    What is computed from parameters may be zero today and not tomorrow, and is left out, but for one-hot rows.
    """
    trained = _computed_from_leaves(graph)
    groups: dict[tuple[str | None, int | None], list[tuple[Call, int]]] = defaultdict(list)
    for call in graph.calls:
        if call.backward or call.optimizer:
            continue
        mask = mask_of(call)
        if mask is not None and (graph.values[mask].masked_share or 0.0) >= MASKED_OUT:
            groups[call.where.file, call.where.line].append((call, mask))
        if call.name not in PRODUCTS:
            continue
        for number in call.reads:
            value = graph.values[number]
            if (value.zero_share or 0.0) >= MOSTLY and (value.is_one_hot or not trained[number]):
                groups[call.where.file, call.where.line].append((call, number))
                break
    products = {call.number for calls in groups.values() for call, _ in calls}
    told = [_mostly_zero(graph, calls, products) for calls in groups.values()]
    return sorted((fact for fact in told if fact.share >= MIN_SHARE), key=lambda fact: -fact.share)


def _mostly_zero(graph: FlowGraph, calls: list[tuple[Call, int]], products: set[int]) -> MostlyZero:
    first, number = max(calls, key=lambda pair: pair[0].seconds)
    counted = {other for call, _ in calls for other in (call.number, *graph.backward_of.get(call.number, ()))}
    for _, operand in calls:
        _add_makers(graph, operand, counted, products)
    seconds = sum(graph.calls[each].seconds for each in counted)
    value = graph.values[number]
    return MostlyZero(
        where=first.where,
        shape=list(value.shape),
        zero_share=value.zero_share or value.masked_share or 0.0,
        one_hot=value.is_one_hot,
        masked=value.masked_share is not None,
        calls_per_step=len(calls) / max(graph.num_steps, 1),
        seconds_per_step=seconds / max(graph.num_steps, 1),
        share=graph.share(seconds),
    )


def _add_makers(graph: FlowGraph, number: int, counted: set[int], products: set[int]) -> None:
    """Add the calls that make a value, as far as nothing else reads what they make; other such products are told at their own line."""
    # A matrix that is filled element by element has as many values as elements, each the base of the next.
    asked, seen = [number], set[int]()
    while asked:
        value = graph.values[asked.pop()]
        if value.base is not None and value.base not in seen:
            seen.add(value.base)
            asked.append(value.base)
        if value.maker is None or value.maker in counted or value.maker in products:
            continue
        readers = {reader for made in graph.calls[value.maker].writes for reader in graph.readers[made]}
        if readers <= counted:
            counted.add(value.maker)
            asked += graph.calls[value.maker].reads


def _computed_from_leaves(graph: FlowGraph) -> list[bool]:
    """For each value whether a parameter is part of it."""
    trained = [value.is_leaf for value in graph.values]
    for call in graph.calls:
        if any(trained[value] for value in call.reads):
            for value in call.writes:
                trained[value] = True
    return trained
