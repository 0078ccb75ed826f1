"""Operators that compute what was computed before: from the same values, by the same operator.

Each value has a name for what it is made of: one from outside is itself, as long as nothing is written into it; what an operator
made of values is the operator, its arguments and their names. Two results with one name are the same, unless chance is at
work, of which the digests tell.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch

from pyrometer.dataflow.graph import Call, FlowGraph, Ref
from pyrometer.dataflow.report import Repeated
from pyrometer.dataflow.sampling import DIGESTED
from pyrometer.quantity import Ratio, Seconds

Since = Literal["same step", "step before"]

MIN_SHARE = 0.02
"""Of the operators' time of a step: less is not told."""

UNKNOWN = re.compile(
    r"rand|normal|bernoulli|dropout|multinomial|uniform|exponential|cauchy|geometric|poisson|^aten::empty|_empty|resize_"
)
"""Names of operators whose results chance decides, or whatever lay in memory."""

MAKING_VIEW = re.compile(r"conj|neg|imag|lift_fresh")
"""Views that show something else than what lies in memory, and what is named by its content."""

FROM_HOST = frozenset({"aten::lift_fresh", "aten::lift_fresh_copy"})
"""What makes a tensor of numbers of the host."""


class _Name(NamedTuple):
    """What a value is made of.

    Attributes:
        number: equal for values that are made of the same.
        lasting: of constants, sizes, and of parameters and buffers of the model that nobody changes.
        whole: the same of all that lies in its memory, in which `layout` is its part.
    """

    number: int
    lasting: bool
    whole: int | None = None
    layout: tuple[Any, ...] = ()


@dataclass
class _Again:
    """What a line computes again; `names` with the step, of what there is again."""

    calls: list[tuple[Call, Seconds]] = field(default_factory=list)
    views_s: Seconds = 0.0
    names: set[tuple[int, int]] = field(default_factory=set)


def repeated(graph: FlowGraph) -> list[Repeated]:
    """What a step computes again, by line, the dearest first; the first of several steps is not counted, in which much is done once."""
    first = min(1, graph.num_steps - 1)
    places: dict[tuple[str | None, int | None, Since], _Again] = defaultdict(_Again)
    for call, since, name in _Names(graph).repeated():
        if call.step < first:
            continue
        again = places[call.where.file, call.where.line, since]
        after = sum(graph.calls[other].seconds for other in graph.backward_of.get(call.number, ()))
        if graph.is_view(call):
            again.views_s += call.seconds + after
        else:
            again.calls.append((call, call.seconds + after))
            again.names.add((call.step, name))
    whole: dict[tuple[str | None, int | None], Seconds] = defaultdict(float)
    for call in graph.calls:
        if call.step >= first:
            whole[call.where.file, call.where.line] += call.seconds
    facts = [
        _fact(again, since, whole[file, line], graph.step_seconds[first:])
        for (file, line, since), again in places.items()
        if again.calls
    ]
    return sorted((fact for fact in facts if fact.share >= MIN_SHARE), key=lambda fact: -fact.share)


def _fact(again: _Again, since: Since, of_line_s: Seconds, steps_s: Sequence[Seconds]) -> Repeated:
    by_name: dict[str, Seconds] = defaultdict(float)
    for call, seconds in again.calls:
        by_name[call.name] += seconds
    names = sorted(by_name, key=lambda name: -by_name[name])
    spent = sum(by_name.values()) + again.views_s
    return Repeated(
        where=max(again.calls, key=lambda each: each[1])[0].where,
        since=since,
        operators=names[:5],
        results=round(len(again.names) / len(steps_s)),
        calls_per_step=sum(call.name == names[0] for call, _ in again.calls) / len(steps_s),
        seconds_per_step=spent / len(steps_s),
        of_line=_part(spent, of_line_s),
        share=_part(spent, sum(steps_s)),
    )


def _part(seconds: Seconds, whole: Seconds) -> Ratio:
    return min(1.0, seconds / whole) if whole > 0 else 0.0


class _Names:
    """Names the values of a graph, call by call."""

    def __init__(self, graph: FlowGraph) -> None:
        self._graph = graph
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[int, _Name] = {}
        self._changed = self._changed_by_inputs()

    def repeated(self) -> Iterator[tuple[Call, Since, int]]:
        """The calls that compute something again: what was computed in the same step, or before it and lasts; with its name."""
        first: dict[int, Call] = {}
        for call in self._graph.calls:
            name = self._name_of_call(call)
            if name is None:
                continue
            before = first.get(name.number)
            if before is None or not self._is_same(before, call):
                first[name.number] = call
            elif name.lasting or before.step == call.step:
                since: Since = "step before" if name.lasting else "same step"
                if self._is_work(call) and (before.step != call.step) == name.lasting:
                    yield call, since, name.number
            else:
                first[name.number] = call

    def _is_work(self, call: Call) -> bool:
        """Whether a call does something, forward, whose result nobody changes afterwards."""
        if call.backward or call.optimizer or call.node is not None:
            return False
        return not any(self._graph.values[value].storage in self._changed for value in call.writes)

    def _is_same(self, one: Call, other: Call) -> bool:
        """Whether the samples of the results say the same."""
        pairs = zip(one.writes, other.writes, strict=False)
        return all(self._graph.values[a].digest == self._graph.values[b].digest for a, b in pairs)

    def _changed_by_inputs(self) -> set[int]:
        """Memory into which something is written that is not the same each time."""
        changed = set()
        for call in self._graph.calls:
            name = self._name_of_call(call)
            if call.mutates and (name is None or not name.lasting):
                changed |= {self._graph.values[value].storage for value in call.writes}
        return changed

    def _name_of_call(self, call: Call) -> _Name | None:
        """The name of what a call computes; none of what has no result, or one that chance decides."""
        if not call.writes or UNKNOWN.search(call.name):
            return None
        first = call.writes[0]
        if first in self._names:
            return self._named(call)
        name = self._named(call)
        seen = (
            self._name(call.reads[0])
            if self._graph.is_view(call) and not MAKING_VIEW.search(call.name)
            else None
        )
        for position, value in enumerate(call.writes):
            layout = self._graph.values[value].layout
            if seen is None:
                number = self._number((name.number, position))
                self._names[value] = _Name(number, name.lasting, number, layout)
            else:
                self._names[value] = self._part(seen, layout, self._graph.values[value].dtype)
        return name

    def _part(self, seen: _Name, layout: tuple[Any, ...], dtype: str) -> _Name:
        """Of what a view shows; views of views are views of the whole, and one that shows the same is the same."""
        if layout == seen.layout:
            return seen
        return _Name(self._number((seen.whole, layout, dtype)), seen.lasting, seen.whole, layout)

    def _named(self, call: Call) -> _Name:
        host = self._from_host(call)
        if host is not None:
            return host
        reads = {value: self._name(value) for value in call.reads}
        arguments = tuple(_spelled(each, reads) for each in call.arguments)
        bases = tuple(self._name(base).number for base in self._bases(call))
        lasting = all(name.lasting for name in reads.values())
        return _Name(self._number((call.name, arguments, bases)), lasting)

    def _bases(self, call: Call) -> Iterator[int]:
        for value in call.writes:
            base = self._graph.values[value].base
            if call.mutates and base is not None:
                yield base

    def _from_host(self, call: Call) -> _Name | None:
        """Of few numbers that come from the host the digest tells all."""
        value = self._graph.values[call.writes[0]]
        if call.name not in FROM_HOST or value.numel > DIGESTED or value.digest is None:
            return None
        return _Name(self._number((call.name, value.shape, value.dtype, value.digest)), lasting=True)

    def _name(self, number: int) -> _Name:
        if number not in self._names:
            value = self._graph.values[number]
            lasting = value.base is None and value.storage in self._graph.held
            name = self._number(("value", number))
            self._names[number] = _Name(name, lasting, name, value.layout)
        return self._names[number]

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _spelled(argument: Any, reads: dict[int, _Name]) -> Hashable:
    """An argument as a part of a name; one that is only written over says nothing."""
    if isinstance(argument, Ref):
        return reads[argument.value].number if argument.value in reads else None
    if isinstance(argument, tuple):
        return tuple(_spelled(each, reads) for each in argument)
    if isinstance(argument, torch.UntypedStorage):
        return object.__repr__(argument)  # its own writes out every byte
    return repr(argument)
