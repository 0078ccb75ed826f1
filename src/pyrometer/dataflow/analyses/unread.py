"""Results and gradients that are computed and gone before anybody reads them.

A value is needed where an operator reads it that is needed itself, where something that is no operator reads it, where the step
returns it, and where it is still held after the last step. All else was computed for nothing. What the last step computed
may be read later, so that it is not judged. A step that drops all that its models return, and trains nothing, is there to be
timed: what they return counts as read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from pyrometer.dataflow.graph import Call, FlowGraph
from pyrometer.dataflow.report import Unread
from pyrometer.place import Place

MIN_SHARE = 0.01
"""Of the operators' time of a step: less is not told."""

GRADIENT_OF_WEIGHT = {"aten::convolution_backward": (1, 0.5)}
"""Operators that compute several gradients at once: which result is the weight's, and its part of the time."""

Spent = list[tuple[Call, float]]


def unread(graph: FlowGraph) -> list[Unread]:
    """What nobody read, the dearest first; gradients by the line that asks for them, results by function."""
    groups: dict[tuple[str, str | None, object], Spent] = defaultdict(list)
    for call, part in _dead(graph):
        if call.backward:
            place = call.caller or Place()
            groups["gradients", place.file, place.line].append((call, part))
        else:
            groups["results", call.where.file, call.where.function].append((call, part))
    told = [_unread(graph, what, spent) for (what, _, _), spent in groups.items()]
    return sorted((fact for fact in told if fact.share >= MIN_SHARE), key=lambda fact: -fact.share)


def _dead(graph: FlowGraph) -> Iterable[tuple[Call, float]]:
    """Calls before the last step that nobody needed, with the part of their time."""
    live = live_values(graph)
    if dropped := _dropped(graph, live):
        live = live_values(graph, dropped)
    for call in graph.calls:
        if call.step == graph.num_steps - 1 or call.optimizer or not call.writes or _is_free(graph, call):
            continue
        if not any(live[value] for value in call.writes):
            yield call, 1.0
        elif call.name in GRADIENT_OF_WEIGHT:
            result, part = GRADIENT_OF_WEIGHT[call.name]
            if len(call.writes) > result + 1 and not live[call.writes[result]]:
                yield call, part


def _is_free(graph: FlowGraph, call: Call) -> bool:
    """Whether a call computes nothing: what it took was something else's."""
    return graph.is_view(call) or call.name.startswith("aten::empty")


def _dropped(graph: FlowGraph, live: Sequence[bool]) -> set[int]:
    """What models returned in steps without a backward pass of which nobody read anything."""
    busy = {call.step for call in graph.calls if call.backward or call.optimizer}
    busy |= {step for step, number in graph.answers if live[number]}
    return {number for step, number in graph.answers if step not in busy}


def live_values(graph: FlowGraph, read: Collection[int] = ()) -> list[bool]:
    """For each value whether it is needed, where these are read."""
    values = graph.values
    live = [False] * len(values)

    def need(number: int | None) -> None:
        while number is not None and not live[number]:
            live[number] = True
            number = values[number].base if values[number].maker is None else None

    for value in values:
        if value.is_escaped or value.is_alive or value.number in read:
            need(value.number)
    for call in reversed(graph.calls):
        if call.writes and not any(live[number] for number in call.writes):
            continue
        for number in (*call.reads, *(values[made].base for made in call.writes)):
            need(number)
    return live


def _unread(graph: FlowGraph, what: str, spent: Spent) -> Unread:
    steps = max(graph.num_steps - 1, 1)
    by_name: dict[str, float] = defaultdict(float)
    by_line: dict[Place, float] = defaultdict(float)
    for call, part in spent:
        by_name[call.name] += part * call.seconds
        by_line[call.caller or call.where if what == "gradients" else call.where] += part * call.seconds
    by_module: dict[str, float] = defaultdict(float)
    for call, part in spent:
        module = (graph.calls[call.forward] if call.forward is not None else call).where.module
        if module:
            by_module[module] += part * call.seconds
    seconds = sum(by_name.values())
    where = max(by_line, key=lambda place: by_line[place])
    judged = sum(graph.step_seconds[:steps])
    return Unread(
        where=where,
        what="gradients" if what == "gradients" else "results",
        operators=sorted(by_name, key=lambda name: -by_name[name])[:5],
        calls_per_step=len(spent) / steps,
        seconds_per_step=seconds / steps,
        share=min(1.0, seconds / judged) if judged > 0 else 0.0,
        modules=sorted(by_module, key=lambda name: -by_module[name])[:3],
        num_leaves=_leaves(graph, (call for call, _ in spent)) if what == "gradients" else 0,
    )


def _leaves(graph: FlowGraph, calls: Iterable[Call]) -> int:
    """Leaves that the forward calls of these read."""
    forward = {call.forward for call in calls if call.forward is not None}
    read = {value for number in forward for value in graph.calls[number].reads}
    return len(
        {_root(graph, value) for value in read} & {value.number for value in graph.values if value.is_leaf}
    )


def _root(graph: FlowGraph, number: int) -> int:
    """The value that a view is of."""
    value = graph.values[number]
    while value.maker is not None and graph.is_view(graph.calls[value.maker]):
        value = graph.values[graph.calls[value.maker].reads[0]]
    return value.number
