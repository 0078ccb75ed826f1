"""Batches of indices that are padded to a length that none of their rows reaches."""

from __future__ import annotations

from collections import defaultdict

from pyrometer.dataflow.graph import Call, FlowGraph, Ref
from pyrometer.dataflow.looking import LOOKUPS
from pyrometer.dataflow.report import ConstantTail
from pyrometer.place import Place

FEWEST_COLUMNS = 8
"""Of shorter rows, padding costs little."""

MIN_TAIL = 0.2
"""Share of the columns: less padding is in every batch."""


def constant_tails(graph: FlowGraph) -> list[ConstantTail]:
    """Lookups whose last columns are constant in nearly every step."""
    lookups: dict[tuple[str | None, int | None, int], list[Call]] = defaultdict(list)
    for call in graph.calls:
        index = call.argument(1)
        if call.backward or call.name not in LOOKUPS or not isinstance(index, Ref):
            continue
        value = graph.values[index.value]
        if value.constant_tail is not None and len(value.shape) > 1 and value.shape[1] >= FEWEST_COLUMNS:
            lookups[call.where.file, call.where.line, value.shape[1]].append(call)
    found = [_tail(graph, calls) for calls in lookups.values()]
    return [tail for tail in found if tail is not None]


def _tail(graph: FlowGraph, calls: list[Call]) -> ConstantTail | None:
    values = [graph.values[call.arguments[1].value] for call in calls]
    tails = [value.constant_tail or 0 for value in values]
    columns, mean = values[0].shape[1], sum(tails) / len(tails)
    steps = len({call.step for call in calls})
    if mean < MIN_TAIL * columns or steps < graph.num_steps or _is_one_batch(tails, graph):
        return None
    seconds = sum(
        call.seconds for call in graph.calls if _has_columns(graph, call, columns, values[0].shape[0])
    )
    return ConstantTail(
        where=_made(graph, values[0].number) or calls[0].where,
        shape=list(values[0].shape),
        tail=mean,
        fewest=min(tails),
        num_steps=graph.num_steps,
        share=graph.share(seconds),
    )


def _made(graph: FlowGraph, number: int) -> Place | None:
    """Where the program allocates what becomes the indices, as far as that is in the recorded steps."""
    value, place = graph.values[number], None
    while True:
        before = value.base
        if value.maker is not None:
            call = graph.calls[value.maker]
            place = call.where if call.where.file is not None else place
            before = call.reads[0] if before is None and call.reads else before
        if before is None:
            return place
        value = graph.values[before]


def _is_one_batch(tails: list[int], graph: FlowGraph) -> bool:
    """Whether too little was seen."""
    return graph.num_steps < 2 or not all(tails)


def _has_columns(graph: FlowGraph, call: Call, columns: int, rows: int) -> bool:
    """Whether a call works on tensors with that many columns, perhaps beneath each other."""
    if call.optimizer or graph.is_view(call):
        return False
    sizes = {size for value in (*call.reads, *call.writes) for size in graph.values[value].shape}
    return columns in sizes or rows * columns in sizes
