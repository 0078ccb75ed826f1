"""Cutting outputs back to the size that they would have without padding; found by looking, never guessed.

An output's dimension follows a size of the inputs when it changes with it. How, is read off two runs, one as the caller
called and one padded along a single axis, and held against every later check.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import torch
from torch.utils import _pytree as pytree

from pyrometer.tuning.shapes.record import CropRule

Shapes = list[tuple[int, ...] | None]
"""Of every leaf of an output; `None` for what is no tensor."""

MAX_DIVISOR = 32
MAX_OFFSET = 8


def output_shapes(output: Any) -> Shapes:
    """The shapes of the leaves of an output.

    >>> output_shapes({"y": torch.zeros(2, 3), "n": 4})
    [(2, 3), None]
    """
    return [
        tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else None for leaf in pytree.tree_leaves(output)
    ]


def learn_rules(axis: str, runs: Mapping[int, Shapes]) -> tuple[list[list[CropRule]], str | None]:
    """How dimensions of the output may follow one axis.

    Args:
        axis: the only size that differed among the runs.
        runs: shapes of the output by that size; at least two.

    Returns:
        For each dimension that follows, the rules that fit all runs, the plainest first; and what cannot be cut back, if
        anything.

    >>> learn_rules("length", {10: [(2, 11)], 16: [(2, 17)]})[0][0][0].offset
    1
    """
    sizes, outputs = list(runs), list(runs.values())
    if len({len(output) for output in outputs}) > 1:
        return [], f"the output holds {' or '.join(str(len(output)) for output in outputs)} values"
    rules = []
    for leaf, shapes in enumerate(zip(*outputs, strict=True)):
        if len({None if shape is None else len(shape) for shape in shapes}) > 1:
            return [], f"output {leaf} has another number of dimensions with padding than without"
        for dim, found in enumerate(zip(*(shape or () for shape in shapes), strict=True)):
            if len(set(found)) == 1:
                continue
            seen = dict(zip(sizes, found, strict=True))
            fitting = [
                rule
                for rule in _candidates(leaf, dim, axis, seen)
                if all(rule.size(given) == size for given, size in seen.items())
            ]
            if not fitting:
                text = ", ".join(f"{size} for {given}" for given, size in seen.items())
                return [], f"dimension {dim} of output {leaf} is {text} of {axis}: no rule tells where to cut"
            rules.append(fitting)
    return rules, None


def disputed_size(rules: Iterable[list[CropRule]], near: int, skipped: Container[int]) -> int | None:
    """The size nearest to one that was run at which rules that fit all runs do not agree; `None` where they do.

    >>> rules, _ = learn_rules("n", {10: [(5,)], 16: [(8,)]})  # halved: rounded up or down?
    >>> disputed_size(rules, 10, ())
    9
    """
    for size in sorted(range(1, 2 * near + 2 * MAX_DIVISOR), key=lambda size: abs(size - near)):
        if size not in skipped and any(len({rule.size(size) for rule in own}) > 1 for own in rules):
            return size
    return None


class Cut(NamedTuple):
    """Where one dimension of one leaf of an output ends."""

    leaf: int
    dim: int
    size: int


def cut(output: Any, cuts: Iterable[Cut]) -> Any:
    """Cut dimensions of the leaves of an output that are longer; what is cut is dense, and nested outputs keep their form.

    >>> cut({"y": torch.arange(4)}, [Cut(leaf=0, dim=0, size=3)])
    {'y': tensor([0, 1, 2])}
    """
    if type(output) is torch.Tensor:
        whole = output
        for _, dim, size in cuts:
            if output.shape[dim] > size:
                output = output.narrow(dim, 0, size)
        return output if output is whole else output.contiguous()
    leaves, nesting = pytree.tree_flatten(output)
    changed: set[int] = set()
    for leaf, dim, size in cuts:
        if leaves[leaf].shape[dim] > size:
            leaves[leaf] = leaves[leaf].narrow(dim, 0, size)
            changed.add(leaf)
    for leaf in changed:
        leaves[leaf] = leaves[leaf].contiguous()
    return pytree.tree_unflatten(leaves, nesting)


def _candidates(leaf: int, dim: int, axis: str, seen: Mapping[int, int]) -> Iterable[CropRule]:
    """Rules that give what the first run gave: as many and some, times, or a share of it, rounded, and some."""
    given, size = next(iter(seen.items()))
    yield CropRule(leaf=leaf, dim=dim, axis=axis, offset=size - given)
    if size > given and size % given == 0:
        yield CropRule(leaf=leaf, dim=dim, axis=axis, factor=size // given)
    for divisor in range(2, MAX_DIVISOR + 1):
        for rounding in ("floor", "ceil"):
            plain = CropRule(leaf=leaf, dim=dim, axis=axis, divisor=divisor, rounding=rounding)
            # A window that slides along gives one more, or fewer, than the division.
            offset = size - plain.size(given)
            if abs(offset) <= MAX_OFFSET:
                yield msgspec.structs.replace(plain, offset=offset)
