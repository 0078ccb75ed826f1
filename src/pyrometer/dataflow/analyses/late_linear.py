"""Linear maps of values that are mostly copies of others: applied before the copying, they do a part of the work.

A convolution with a kernel of one, or a product with the channels, treats places alike: of an enlarged image, or of repeated rows, it
gives the enlarged or repeated result.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from pyrometer.dataflow.graph import Call, FlowGraph, Ref, Value
from pyrometer.dataflow.report import LateLinear
from pyrometer.quantity import Ratio, Seconds

MIN_SHARE = 0.02
"""Of the operators' time of a step: less is not told."""

MOST_DISTINCT = 0.5
"""Share of the places that are no copies, above which little is done twice."""

COPYING = re.compile(r"^aten::(_?upsample_\w+|expand|repeat|_unsafe_index|index|index_select)$")
"""Operators that may make more places of those they are given; in inference, enlarging by whole factors is an index."""

PASSING = frozenset({"aten::clone", "aten::_unsafe_view", "aten::_to_copy", "aten::contiguous"})
"""Operators that show the same elements in another way, beside views."""

PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::bmm": 0}
"""The position of the operand whose rows are mapped."""


class _Source(NamedTuple):
    """Where the elements of a value are copied from."""

    value: Value
    copied: Call


def late_linear(graph: FlowGraph) -> list[LateLinear]:
    """Such maps by line, the dearest first."""
    sources: dict[int, _Source] = {}
    spent: dict[tuple[str | None, int | None], list[tuple[Call, _Source, Seconds]]] = defaultdict(list)
    for call in graph.calls:
        if call.backward or call.optimizer or not call.reads or not call.writes:
            continue
        source = _late(graph, call, sources)
        if source is not None:
            spent[call.where.file, call.where.line].append((call, source, _needless_s(graph, call, source)))
        _follow(graph, call, sources)
    facts = [_fact(graph, each) for each in spent.values()]
    return sorted((fact for fact in facts if fact.share >= MIN_SHARE), key=lambda fact: -fact.share)


def _follow(graph: FlowGraph, call: Call, sources: dict[int, _Source]) -> None:
    """Note of what a call makes where its elements are copied from."""
    read, written = graph.values[call.reads[0]], graph.values[call.writes[0]]
    if COPYING.match(call.name) and written.numel > read.numel:
        sources[written.number] = _Source(read, call)
        return
    passes = (graph.is_view(call) or call.name in PASSING) and written.numel == read.numel
    if passes and read.number in sources:
        sources.setdefault(written.number, sources[read.number])


def _late(graph: FlowGraph, call: Call, sources: dict[int, _Source]) -> _Source | None:
    """What a call maps the copies of, if at most a part of the places are none."""
    operand = _mapped(graph, call)
    source = sources.get(operand.number) if operand is not None else None
    if operand is None or source is None or not _keeps_channels(call, operand, source):
        return None
    return source if _distinct(graph, source) <= MOST_DISTINCT else None


def _needless_s(graph: FlowGraph, call: Call, source: _Source) -> Seconds:
    """What mapping the copies takes, and copying the channels that the map does away with."""
    mapped, copied = (
        each.seconds + sum(graph.calls[other].seconds for other in graph.backward_of.get(each.number, ()))
        for each in (call, source.copied)
    )
    channels = 1 if call.name == "aten::convolution" else -1
    kept = graph.values[call.writes[0]].shape[channels] / source.value.shape[channels]
    return (1 - _distinct(graph, source)) * mapped + max(0.0, 1 - kept) * copied


def _distinct(graph: FlowGraph, source: _Source) -> Ratio:
    return source.value.numel / graph.values[source.copied.writes[0]].numel


def _mapped(graph: FlowGraph, call: Call) -> Value | None:
    """The operand whose places a linear map treats alike."""
    if call.name == "aten::convolution":
        operand, weight = call.argument(0), call.argument(1)
        if not isinstance(operand, Ref) or not isinstance(weight, Ref):
            return None
        pointwise = all(size == 1 for size in graph.values[weight.value].shape[2:])
        plain = set(call.argument(3)) == {1} and set(call.argument(4)) == {0} and not call.argument(6)
        return graph.values[operand.value] if pointwise and plain else None
    operand = call.argument(PRODUCTS[call.name]) if call.name in PRODUCTS else None
    return graph.values[operand.value] if isinstance(operand, Ref) else None


def _keeps_channels(call: Call, operand: Value, source: _Source) -> bool:
    """Whether copies are made along other dimensions than the one that is mapped."""
    if call.name == "aten::convolution":
        return len(source.value.shape) > 1 and source.value.shape[1] == operand.shape[1]
    return bool(source.value.shape) and source.value.shape[-1] == operand.shape[-1] > 1


def _fact(graph: FlowGraph, spent: list[tuple[Call, _Source, Seconds]]) -> LateLinear:
    dearest, source, _ = max(spent, key=lambda each: each[2])
    total = sum(seconds for _, _, seconds in spent)
    return LateLinear(
        where=dearest.where,
        copied=source.copied.where,
        by=source.copied.name,
        operator=dearest.name,
        distinct=_distinct(graph, source),
        seconds_per_step=total / max(graph.num_steps, 1),
        share=graph.share(total),
    )
