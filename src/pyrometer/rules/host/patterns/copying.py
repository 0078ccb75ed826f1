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
from pyrometer.rules.rule import Case, Module

if TYPE_CHECKING:
    from pyrometer.trace.records.device import CopyKind, CopyPlace

BUILDERS = ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.asarray", "torch.scalar_tensor")
MOVERS = ("to", "cuda")

FASTEST_BYTES_PER_NS = 55.0
"""What 16 lanes of PCIe 5.0 carry one way, about: from pinned memory nothing that hangs on a bus is faster."""

COMMON_BYTES_PER_NS = 12.0
"""The same of PCIe 3.0, which still serves many."""


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


def copy_gain(case: Case, share: float, direction: str, kind: CopyKind | None = None) -> Gain:
    """What hiding the copies would bring: the replay's answer where it tried them, else all that they cost.

    Args:
        case: with the trace.
        share: of the span that goes with them at best.
        direction: of the copies, such as `H2D`.
        kind: the copies, where the bytes and not the number of them take the time: hidden or not they need the bus that long,
            and a step that is mostly copying gets no shorter than that.
    """
    report = case.trace
    letters = direction.replace("2", "to")
    least, worst, told = 1 - share, 0.0, "trace what-if: copies for free"
    if kind is not None and report is not None and report.span_ns:
        least = max(least, min(1.0, _bus_ns(kind) / report.span_ns))
        worst, told = _at_worst(kind, share), f"{told}, but for the time that the bus takes"
    for recoverable in report.recoverable if report is not None else []:
        if recoverable.kind == "copy" and letters in recoverable.name:
            low = max(least, recoverable.ratio_low)
            return Gain(ratio_low=low, ratio_high=max(low, recoverable.ratio_high, worst), method=told)
    return Gain(ratio_low=least, ratio_high=worst or 1.0, method="bound: none of the time of the copies")


def _bus_ns(kind: CopyKind) -> float:
    """How long copies take at least: as long as they did of pinned memory, at the rate of the fastest bus of other memory."""
    if kind.memory == "pinned":
        return float(kind.total_ns)
    return min(float(kind.total_ns), kind.total_bytes / FASTEST_BYTES_PER_NS)


def _at_worst(kind: CopyKind, share: float) -> float:
    """New over old where copies from pageable memory become no faster than a common bus makes them, and nothing hides them."""
    if kind.memory == "pinned" or not kind.gb_per_s:
        return 0.0
    return 1 - share * max(0.0, 1 - kind.gb_per_s / COMMON_BYTES_PER_NS)


def _is_of(place: CopyPlace, kind: CopyKind) -> bool:
    return place.kind == kind.kind and place.memory == kind.memory
