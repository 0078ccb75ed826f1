"""Whether two traces may be of one program: by what it calculates with, and by its modules, also where no shapes were recorded.

What a program calls is told by families (convolution, product, attention, …), which survive another way of writing, another
batch, precision, layout, optimizer or device. Heavy families weigh most, operators of no family least; the likeness is what
both sides have over what either has. Modules that agree ask for less of it, and modules that do not for more. Of a compiled side only what
compilers leave alone is known, and of graphs that are replayed only kernels.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.families import HEAVY, PRODUCT, family_of, kernel_families
from pyrometer.trace.naming.patterns import BACKWARD, is_module, module_names
from pyrometer.trace.rows import Mask, mask_of, row_numbers
from pyrometer.trace.trace import RankTrace, kept

HEAVY_WEIGHT, LIGHT_WEIGHT, OTHER_WEIGHT = 3.0, 1.0, 0.5

LIKE = 0.6
"""Least likeness of two traces of one program, where nothing is known of modules."""

LIKE_WITH_MODULES = 0.4
"""The same where the modules agree."""

LIKE_WITHOUT_MODULES = 0.8
"""The same where both sides have modules, and other ones."""

SAME_MODULES = 0.5
"""Share of common names of modules from which they agree."""

MOST_CALLS = 1.4
"""Ratio of calls per step beyond which a step does other work."""

MOST_PRODUCTS = 1.6
"""The same of products where one side is compiled: attention that was written out has half as many again as the fused one."""

UNFUSED = frozenset({"convolution", "product", "attention", "lstm", "gru"})
"""Families that compilers leave to libraries, so that they are seen on a compiled side."""

WRAPPERS = frozenset({"OptimizedModule", "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "Sequential"})  # fmt: skip

HOUSEKEEPING = r"^(aten::(to|_to_copy|copy_|ones|zeros|empty|ones_like|zeros_like|randn?|randint|random_|normal_|uniform_|lift_fresh|item|is_nonzero|_local_scalar_dense|detach_?|contiguous|clone)$|Torch|## Call|CompiledF|enumerate\(|ProfilerStep|Optimizer\.|triton_|.*cpp_fused)"
"""Operators that any program may call: making, moving and reading tensors, and what frames a call."""

OUTSIDE = rf"{BACKWARD}|Backward\d*$|^Optimizer\."
"""Within these runs what follows from the forward pass and from options."""


COUNTED = frozenset({"convolution", "attention", "lstm", "gru"})
"""Families whose calls no rewrite merges, so that another number of them is other work; nor does a compiler merge products."""


class Makings(NamedTuple):
    """What one side is made of."""

    calls: dict[str, float]  # families, or operators of none, and their weight
    kernels: frozenset[str]  # families of the kernels
    modules: frozenset[str]  # names, without numbers
    roots: frozenset[str]  # of these, the ones that no other calls
    counts: dict[str, float]  # calls per step of families that are `COUNTED`, and of products


def unlike(a: RankTrace, b: RankTrace, *, compiled: tuple[bool, bool]) -> str | None:
    """What only one side has, in words, where the sides are different programs; `None` where they may be one."""
    sides = _makings(a), _makings(b)
    agree = _modules_agree(*sides)
    calls = _comparable_calls(*sides)
    if any(compiled):
        fits = all(
            _compiled_from(side, other, apart={PRODUCT, "attention"} if all(compiled) else {PRODUCT})
            for side, other, is_compiled in zip(sides, sides[::-1], compiled, strict=True)
            if is_compiled
        )
        differ = not fits or agree is False
    else:
        least = {True: LIKE_WITH_MODULES, False: LIKE_WITHOUT_MODULES, None: LIKE}[agree]
        differ = all(calls) and _likeness(*calls) < least
    return _only(calls, sides) if differ else None


def _comparable_calls(a: Makings, b: Makings) -> tuple[dict[str, float], dict[str, float]]:
    """What both call; families of kernels where a side has no operators that say it, as in replayed graphs."""
    if (a.calls.keys() & HEAVY and b.calls.keys() & HEAVY) or not (a.kernels or b.kernels):
        return a.calls, b.calls
    kernels = [{family: _weight(family) for family in side.kernels} for side in (a, b)]
    return kernels[0], kernels[1]


def other_work(a: RankTrace, b: RankTrace, *, compiled: tuple[bool, bool]) -> tuple[str, float, float] | None:
    """A family of which a step of one side calls more than of the other, and both numbers; `None` without steps."""
    sides = _makings(a), _makings(b)
    if not a.steps.height or not b.steps.height or not all(side.calls.keys() & HEAVY for side in sides):
        return None
    counted = {"convolution", PRODUCT} if any(compiled) else COUNTED
    for family in sorted(counted):
        of_a, of_b = (side.counts.get(family, 0.0) for side in sides)
        if max(of_a, of_b) > (MOST_PRODUCTS if family == PRODUCT else MOST_CALLS) * min(of_a, of_b):
            return family, of_a, of_b
    return None


def _likeness(a: dict[str, float], b: dict[str, float]) -> float:
    """Weight of what both have over that of what either has.

    >>> _likeness({"product": 3.0, "relu": 1.0}, {"product": 3.0, "convolution": 3.0, "relu": 1.0})
    0.5714285714285714
    """
    either = a | b
    return sum(either[name] for name in a.keys() & b.keys()) / sum(either.values())


def _compiled_from(compiled: Makings, other: Makings, *, apart: set[str]) -> bool:
    """Whether what a compiled side leaves to libraries is what the other calls, and its convolutions are not missing.

    Args:
        compiled: the compiled side.
        other: what it may have been compiled from, or the same compiled otherwise.
        apart: families that the other side may have taken apart, so that they are not seen there.
    """
    seen = (compiled.calls.keys() | compiled.kernels) & UNFUSED
    there = (other.calls.keys() | other.kernels) & UNFUSED
    return not seen or (seen - apart <= there and "convolution" not in there - seen)


def _modules_agree(a: Makings, b: Makings) -> bool | None:
    """Whether the modules are those of one program; `None` where a side has none, or only such as any program has."""
    if not a.modules or not b.modules:
        return None
    alike = len(a.modules & b.modules) >= SAME_MODULES * len(a.modules | b.modules)
    if not a.roots or not b.roots:
        return True if alike else None
    if a.roots & b.roots:
        return True
    return None if alike else False


@kept
def _makings(trace: RankTrace) -> Makings:
    events = trace.events
    is_op = mask_of(events, pl.col("kind") == Kind.CPU_OP.value)
    outside = mask_of(events, pl.col("name").str.contains(OUTSIDE).fill_null(value=False))
    forward = is_op & (trace.nearest(outside) < 0)
    parent = row_numbers(events["parent"])
    below_op = (parent >= 0) & (trace.nearest(is_op)[parent] >= 0)
    names = _names(events, forward)
    plain = _names(events, forward & ~below_op & ~mask_of(events, pl.col("name").str.contains(HOUSEKEEPING)))
    families = {family for name in names for family in family_of(name)}
    calls = {family: _weight(family) for family in families}
    calls |= {name: OTHER_WEIGHT for name in plain if not family_of(name)}
    module = mask_of(events, is_module())
    own = module & ~mask_of(events, pl.col("name").str.contains(r"Loss(_\d+)?$"))
    wraps = own & np.isin(_cleaned(events["name"]), list(WRAPPERS))
    inner = own & ~wraps
    above = np.where(parent >= 0, trace.nearest(inner)[parent], -1)
    return Makings(
        calls,
        kernel_families(trace.of_kind(Kind.KERNEL)["name"].drop_nulls().unique().to_list()),
        frozenset(_cleaned(events["name"].filter(pl.Series(inner)))),
        frozenset(_cleaned(events["name"].filter(pl.Series(inner & (above < 0))))),
        {
            family: _calls_per_step(trace, forward, family)
            for family in sorted(families & (COUNTED | {PRODUCT}))
        },
    )


def _calls_per_step(trace: RankTrace, forward: Mask, family: str) -> float:
    """Calls of a family that no other call of it holds."""
    named = [name for name in _names(trace.events, forward) if family in family_of(name)]
    calls = forward & mask_of(trace.events, pl.col("name").is_in(named))
    parent, step = trace.parent, row_numbers(trace.events["step"])
    outermost = calls & ~((parent >= 0) & (trace.nearest(calls)[parent] >= 0))
    return float((outermost & (step >= 0)).sum()) / max(trace.steps.height, 1)


def _names(events: pl.DataFrame, rows: Mask) -> list[str]:
    names: list[str] = events["name"].filter(pl.Series(rows)).drop_nulls().unique().to_list()
    return names


def _cleaned(names: pl.Series) -> list[str]:
    return [re.sub(r"_?\d+", "", name or "") for name in module_names(names).to_list()]


def _weight(family: str) -> float:
    return HEAVY_WEIGHT if family in HEAVY else LIGHT_WEIGHT


def _only(calls: tuple[dict[str, float], dict[str, float]], sides: tuple[Makings, Makings]) -> str:
    """The heaviest of what only one side has, on both."""

    def first(names: Collection[str]) -> str:
        families = [name for name in names if ":" not in name] or names
        return ", ".join(sorted(families, key=lambda name: (name not in HEAVY, name))[:3]) or "nothing"

    a, b = (side.keys() for side in calls)
    roots = [", ".join(sorted(side.roots)[:2]) for side in sides]
    modules = f"modules {roots[0]} against {roots[1]}; " if all(roots) and roots[0] != roots[1] else ""
    return f"{modules}{first(a - b)} in the first only, {first(b - a)} in the second only"
