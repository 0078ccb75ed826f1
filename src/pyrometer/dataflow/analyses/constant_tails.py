"""Batches that are padded to a length that none of their rows reaches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from pyrometer.dataflow.graph import Call, FlowGraph, Ref, Value
from pyrometer.dataflow.looking import LOOKUPS
from pyrometer.dataflow.report import ConstantTail
from pyrometer.place import Place

FEWEST_COLUMNS = 8
"""Of shorter rows, padding costs little."""

FEWEST_ROWS = 4

MIN_TAIL = 0.2
"""Share of the columns: less padding is in every batch."""


def constant_tails(graph: FlowGraph) -> list[ConstantTail]:
    """What lookups and models are given whose last columns are constant in every step."""
    given: dict[tuple[str | None, int | None, int], list[tuple[int, int, Place]]] = defaultdict(list)
    for step, number, place in (*_looked_up(graph), *_fed(graph)):
        columns = graph.values[number].columns
        if columns >= FEWEST_COLUMNS:
            given[place.file, place.line, columns].append((step, number, place))
    found = [_tail(graph, each) for each in given.values()]
    return _once([tail for tail in found if tail is not None])


def _looked_up(graph: FlowGraph) -> Iterator[tuple[int, int, Place]]:
    for call in graph.calls:
        index = call.argument(1)
        if not call.backward and call.name in LOOKUPS and isinstance(index, Ref):
            yield call.step, index.value, call.where


def _fed(graph: FlowGraph) -> Iterator[tuple[int, int, Place]]:
    """Sequences of features, with the place of who reads them first."""
    for step, number in graph.fed:
        readers = graph.readers[number]
        if len(graph.values[number].shape) == 3 and readers:
            yield step, number, graph.calls[readers[0]].where


def _once(tails: list[ConstantTail]) -> list[ConstantTail]:
    """Of several tables that are given the same rows the first."""
    by_place = {(tail.where.file, tail.where.line, tuple(tail.shape)): tail for tail in reversed(tails)}
    return list(reversed(by_place.values()))


def _tail(graph: FlowGraph, given: list[tuple[int, int, Place]]) -> ConstantTail | None:
    values = [graph.values[number] for _, number, _ in given]
    tails = [value.constant_tail or 0 for value in values]
    columns, mean = values[0].columns, sum(tails) / len(tails)
    steps = len({step for step, _, _ in given})
    if mean < MIN_TAIL * columns or steps < max(graph.num_steps, _fewest_steps(values[0])) or not all(tails):
        return None
    seconds = sum(call.seconds for call in _over_columns(graph, columns, values[0].shape[0]))
    return ConstantTail(
        where=_made(graph, values[0].number) or given[0][2],
        shape=list(values[0].shape),
        columns=columns,
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


def _fewest_steps(value: Value) -> int:
    """Indices of several rows do not end alike by chance; features of one batch may, such as a still picture."""
    return 1 if len(value.shape) == 2 and value.shape[0] >= FEWEST_ROWS else 2


def _over_columns(graph: FlowGraph, columns: int, rows: int) -> Iterator[Call]:
    """Calls on tensors with that many columns, and all of modules that take them one by one, as recurrent ones do."""
    direct = {call.number for call in graph.calls if _has_columns(graph, call, columns, rows)}
    rounds = Counter(call.where.module for call in graph.calls if call.number not in direct)
    taking = {graph.calls[number].where.module for number in direct}
    recurrent = {module for module in taking if module and rounds[module] >= columns}
    return (call for call in graph.calls if call.number in direct or call.where.module in recurrent)


def _has_columns(graph: FlowGraph, call: Call, columns: int, rows: int) -> bool:
    """Whether a call works on tensors with that many columns, perhaps beneath each other."""
    if call.optimizer or graph.is_view(call):
        return False
    sizes = {size for value in (*call.reads, *call.writes) for size in graph.values[value].shape}
    return columns in sizes or rows * columns in sizes
