"""The function around a place, where the place is what the function is there for: what goes with it where it is replaced.

A change seldom takes away only the calls that gave a fault away: the copies of a state go with the arithmetic on the copies, a one-hot
matrix with the casts that made it, and all of it with its backward pass. The layers that the function runs stay. A function that drives
the step is not counted: most of what it does is something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.quantity import Ratio, Seconds
from pyrometer.rules.host.patterns.rounds import frames_of, repeated_ns
from pyrometer.rules.host.patterns.spending import spread
from pyrometer.rules.joining import FunctionNode, Located, function_at, is_same_file
from pyrometer.rules.rule import Case, Module

if TYPE_CHECKING:
    from pyrometer.bench.ceiling import Ceiling
    from pyrometer.host.profile import HostLine

MOST_SHARE = 0.9
"""Of the step: a function with more is the step."""

LEAST_PART = 1 / 3
"""Of its function that a place takes: below, the function does something else."""

MOST_LAYERS = 0.5
"""Of a function in layers: with more it is a part of the network."""

KEPT = re.compile(r"self\.\w+")
"""Name of a leaf that is called as an attribute of the object itself."""

WIDEST = 0.3
"""Interval of a ceiling that still says more than samples do."""

DRIVES = frozenset({"backward", "data"})
"""Kinds of leaves that tell a function that drives the step."""


class Surroundings(NamedTuple):
    """A function, by samples and, where it was cut out of the step, by experiment."""

    share: Ratio
    """Of a step, with what it calls and its backward pass, without the layers that it runs."""
    part: Ratio
    """Of its time, that is."""
    most: Ratio
    """The same at most, by what samples leave open and the trace has counted."""
    ceiling: Ceiling | None


def surroundings(case: Case, where: Located, share: Ratio) -> Surroundings | None:
    """The function around a place that takes this share of a step; null where it is there for something else.

    Args:
        case: with the profile of the host.
        where: the place.
        share: of the step that the place is known to take.
    """
    profile, place = case.host, function_at(where, case.modules)
    if profile is None or place is None:
        return None
    lines = [line for line in profile.lines if function_at(line.where, case.modules) == place]
    total_s = max(
        (f.total_s for f in profile.functions if function_at(f.where, case.modules) == place), default=0.0
    )
    if not total_s or any(leaf.kind in DRIVES for line in lines for leaf in line.leaves):
        return None
    layers_s = _layers_s(lines, *place)
    part = max(0.0, 1 - layers_s / total_s)
    around = profile.share(part * (total_s + backward_s(case, place)))
    ceiling = _ceiling(case.ceilings or (), where, place[1])
    is_step = around > MOST_SHARE and ceiling is None
    if is_step or part < 1 - MOST_LAYERS or share < LEAST_PART * around:
        return None
    most = max(1 - spread(profile, min(1.0, layers_s / total_s)).least, _repeated(case, place))
    return Surroundings(share=max(around, share), part=part, most=most, ceiling=ceiling)


def _repeated(case: Case, function: tuple[Module, FunctionNode]) -> Ratio:
    """The part of a function's time in the trace that its rounds take; 0 where it has none."""
    lines = case.trace.top_lines if case.trace is not None else []
    line = next((line for line in lines if function_at(line, case.modules) == function), None)
    if line is None or case.trace is None:
        return 0.0
    whole_ns = sum(frame.total_ns for frame in frames_of(case.trace, line, line.function))
    return min(1.0, repeated_ns(case.trace, line, line.function) / max(whole_ns, 1))


def backward_s(case: Case, function: tuple[Module, FunctionNode]) -> Seconds:
    """Seconds per step that the backward pass of a function's operators takes.

    The trace tells which part of the backward pass is the function's, and the samples how long all of it is with the engine, which
    takes as long as small operators do.
    """
    if case.trace is None or case.host is None:
        return 0.0
    lines = case.trace.top_lines
    whole_s = sum(leaf.seconds_per_step for leaf in case.host.leaves if leaf.kind == "backward")
    all_ns = sum(line.backward_ns for line in lines)
    own_ns = sum(line.backward_ns for line in lines if function_at(line, case.modules) == function)
    return whole_s * own_ns / all_ns if own_ns else 0.0


def _layers_s(lines: Sequence[HostLine], module: Module, function: FunctionNode) -> Seconds:
    """What a function spends in layers that it calls: modules, and what an object keeps and is no function of the user's."""
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    called = {module.source(call.func) for call in calls if module.flow.is_module_call(call)}
    return sum(
        leaf.seconds_per_step
        for line in lines
        for leaf in line.leaves
        if leaf.name in called or KEPT.fullmatch(leaf.name)
    )


def _ceiling(ceilings: Sequence[Ceiling], where: Located, function: FunctionNode) -> Ceiling | None:
    """The step without this very function."""
    first = {function.lineno, *(decorator.lineno for decorator in function.decorator_list)}
    return next(
        (
            ceiling
            for ceiling in ceilings
            if ceiling.where.line in first
            and ceiling.ratio_high - ceiling.ratio_low <= WIDEST
            and where.file is not None
            and ceiling.where.file is not None
            and is_same_file(where.file, ceiling.where.file)
        ),
        None,
    )
