"""Compile time nested: which of torch's steps ran inside of which, merged by path, compilation by compilation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.costs.events import Span
from pyrometer.compiler.costs.phase_names import COMPILATIONS, phase_inside, phase_named
from pyrometer.compiler.costs.record import PhaseTree

SMALLEST = 2e-4
"""Share of all compile time below which a step has no row of its own."""


class _Path(NamedTuple):
    around: int
    text: str
    is_compilation: bool


class _Step(NamedTuple):
    span: Span
    around: int
    compile_id: CompileId | None
    phase: str


def phase_tree(waits: Sequence[Span]) -> PhaseTree | None:
    """The tree of what a program waited for (`waited_for`); `None` where nothing was timed.

    What is compiled while something else is compiled stands inside of it, as a compilation of its own.
    """
    rows: dict[_Path, int] = {}
    own_ns, calls, phases = list[int](), list[int](), list[str]()

    def row(path: _Path, phase: str) -> int:
        at = rows.setdefault(path, len(rows))
        if at == len(own_ns):
            own_ns.append(0)
            calls.append(0)
            phases.append(phase)
        return at

    left = [_Step(span, -1, span.compile_id, "") for span in reversed(waits)]
    while left:
        span, around, compile_id, surrounding = left.pop()
        own_id = span.compile_id if span.name in COMPILATIONS else compile_id
        if around < 0 or own_id != compile_id:
            around = row(_Path(around, "" if own_id is None else own_id.text, is_compilation=True), "")
            calls[around] += 1
        phase = phase_inside(span.name, surrounding) if surrounding else phase_named(span.name)
        at = row(_Path(around, span.name, is_compilation=False), phase)
        own_ns[at] += span.own_ns
        calls[at] += 1
        left += [_Step(child, at, own_id, phase) for child in reversed(span.children)]
    if not sum(own_ns):
        return None
    return _columns([path.around for path in rows], [path.text for path in rows], phases, calls, own_ns)


def _columns(
    parent: Sequence[int], text: Sequence[str], phase: Sequence[str], calls: Sequence[int], own_ns: list[int]
) -> PhaseTree:
    """Columns without rows that are too short; rows follow the rows around them."""
    total_ns = list(own_ns)
    for at in range(len(parent) - 1, -1, -1):
        if parent[at] >= 0:
            total_ns[parent[at]] += total_ns[at]
    least = SMALLEST * sum(own_ns)
    place: dict[int, int] = {}
    kept, left_out = list[int](), 0
    for at, around in enumerate(parent):
        if total_ns[at] >= least or around < 0:
            place[at] = len(kept)
            kept.append(at)
        else:
            place[at] = place[around]
            own_ns[kept[place[around]]] += own_ns[at]
            left_out += calls[at]
    names, phases = _numbers(text[at] for at in kept), _numbers(phase[at] for at in kept if phase[at])
    return PhaseTree(
        names=list(names),
        phases=list(phases),
        parent=[place[parent[at]] if parent[at] >= 0 else -1 for at in kept],
        name=[names[text[at]] for at in kept],
        phase=[phases.get(phase[at], -1) for at in kept],
        calls=[calls[at] for at in kept],
        own_s=[own_ns[at] / 1e9 for at in kept],
        left_out=left_out,
    )


def _numbers(texts: Iterable[str]) -> dict[str, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}
