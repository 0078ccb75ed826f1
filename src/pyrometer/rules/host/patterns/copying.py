"""Copies of a trace by kind, and the lines of the source that make them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.rules.host.patterns.reads import goes_to_cpu
from pyrometer.rules.joining import function_at
from pyrometer.rules.places import place_of

if TYPE_CHECKING:
    from pyrometer.rules.case import Case
    from pyrometer.source.module import Module
    from pyrometer.trace.analysis.copies import CopyKind, CopyPlace

BUILDERS = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.asarray", "torch.scalar_tensor")
MOVERS = ("to", "cuda")


class Copied(NamedTuple):
    """All copies of one kind, with the place that makes the most of them."""

    row: int
    kind: CopyKind
    place: Place
    module: Module | None
    call: ast.Call | None
    """The expression in the source, where there is one."""


def copied(case: Case, direction: str, memory: str | None) -> Iterator[Copied]:
    """The kinds of copies of one direction (`H2D`, `D2H`) and one kind of host memory (None for any)."""
    report = case.trace
    if report is None or not report.span_ns:
        return
    for index, kind in enumerate(report.copies.kinds):
        if kind.kind != direction or (memory is not None and kind.memory != memory):
            continue
        where = next((place for place in report.copies.places if _is_of(place, kind)), None)
        if where is None:
            yield Copied(index, kind, Place(), None, None)
            continue
        module, call = mover_at(case, where)
        line = call.lineno if call is not None else None
        yield Copied(index, kind, place_of(case, where.where, line=line), module, call)


def mover_at(case: Case, place: CopyPlace) -> tuple[Module | None, ast.Call | None]:
    """The call in the function that a trace names that copies to a device, the one in most loops."""
    found = function_at(place.where, case.modules)
    if found is None:
        return None, None
    module, function = found
    here = [call for call in movers(module) if module.function_of(call) is function]
    return module, max(here, key=lambda call: len(module.loops_around(call)), default=None)


def movers(module: Module) -> Iterator[ast.Call]:
    """Calls that put a tensor on a device: `.to(device)`, `.cuda()`, `torch.tensor(…, device=…)`."""
    for call in module.method_calls(*MOVERS):
        to_dtype = any((module.name_of(arg) or "").startswith("torch.") for arg in call.args[:1])
        if not to_dtype and not goes_to_cpu(module, call):
            yield call
    for call in module.calls(*BUILDERS):
        if module.keyword(call, "device") is not None:
            yield call


def copy_cost(case: Case, share: float, how: str) -> Cost:
    """A share of the span as a cost."""
    return case.cost_of(share, f"trace: {how}, as a share of the span")


def copy_gain(case: Case, share: float, direction: str) -> Gain:
    """What hiding the copies would bring: the replay's answer where it tried them, else all that they cost."""
    report = case.trace
    letters = direction.replace("2", "to")
    for recoverable in report.recoverable if report is not None else []:
        if recoverable.kind == "copy" and letters in recoverable.name:
            low = max(1 - share, recoverable.ratio_low)
            return Gain(
                ratio_low=low,
                ratio_high=max(low, recoverable.ratio_high),
                method="trace what-if: copies for free",
            )
    return Gain(ratio_low=1 - share, ratio_high=1.0, method="bound: none of the time of the copies")


def _is_of(place: CopyPlace, kind: CopyKind) -> bool:
    return place.kind == kind.kind and place.memory == kind.memory
