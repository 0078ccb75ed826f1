"""Cutting outputs back to the size that they would have without padding; found by looking, never guessed.

An output's dimension follows a size of the inputs when it changes with it. How, is read off two runs, one as the caller
called and one padded along a single axis, and held against every later check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.compiler.shapes.axes import Sizes
from pyrometer.compiler.shapes.record import CropRule

Shapes = list[tuple[int, ...] | None]
"""Of every leaf of an output; `None` for what is no tensor."""


def output_shapes(output: Any) -> Shapes:
    """The shapes of the leaves of an output.

    >>> output_shapes({"y": torch.zeros(2, 3), "n": 4})
    [(2, 3), None]
    """
    return [
        tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else None for leaf in pytree.tree_leaves(output)
    ]


def learn_rules(axis: str, runs: Mapping[int, Shapes]) -> tuple[list[CropRule], str | None]:
    """How dimensions of the output follow one axis.

    Args:
        axis: the only size that differed among the runs.
        runs: shapes of the output by that size; at least two.

    Returns:
        The rules, and what cannot be cut back, if anything.

    >>> learn_rules("length", {10: [(2, 11)], 16: [(2, 17)]})[0][0].offset
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
            rule = next(
                (
                    rule
                    for rule in _candidates(leaf, dim, axis, sizes[0], found[0])
                    if all(rule.size(size) == seen for size, seen in zip(sizes, found, strict=True))
                ),
                None,
            )
            if rule is None:
                seen = ", ".join(f"{size} for {given}" for given, size in zip(sizes, found, strict=True))
                return [], (
                    f"dimension {dim} of output {leaf} is {seen} of {axis}: no rule tells where to cut"
                )
            rules.append(rule)
    return rules, None


def crop(output: Any, rules: Iterable[CropRule], sizes: Mapping[str, int]) -> Any:
    """Cut an output back to what belongs to the true sizes; nested outputs keep their form.

    >>> crop({"y": torch.arange(4)}, [CropRule(leaf=0, dim=0, axis="n")], {"n": 3})
    {'y': tensor([0, 1, 2])}
    """
    leaves, nesting = pytree.tree_flatten(output)
    changed: set[int] = set()
    for rule in rules:
        wanted = rule.size(sizes[rule.axis])
        if leaves[rule.leaf].shape[rule.dim] > wanted:
            leaves[rule.leaf] = leaves[rule.leaf].narrow(rule.dim, 0, wanted)
            changed.add(rule.leaf)
    for leaf in changed:
        leaves[leaf] = leaves[leaf].contiguous()
    return pytree.tree_unflatten(leaves, nesting)


def as_mapping(names: Iterable[str], sizes: Sizes) -> dict[str, int]:
    """Sizes by the name of their axis."""
    return dict(zip(names, sizes, strict=True))


def _candidates(leaf: int, dim: int, axis: str, given: int, small: int) -> Iterable[CropRule]:
    """Rules that give the smaller size, the plainest first."""
    yield CropRule(leaf=leaf, dim=dim, axis=axis, offset=small - given)
    if small and small % given == 0:
        yield CropRule(leaf=leaf, dim=dim, axis=axis, factor=small // given)
    for divisor in {round(given / small), given // small, given // small + 1} if small else ():
        for rounding in ("floor", "ceil"):
            rule = CropRule(leaf=leaf, dim=dim, axis=axis, divisor=max(divisor, 1), rounding=rounding)
            if rule.size(given) == small:
                yield rule
            # A window that slides over the edge: one more, or fewer, than the division gives.
            yield CropRule(
                leaf=leaf,
                dim=dim,
                axis=axis,
                divisor=max(divisor, 1),
                rounding=rounding,
                offset=small - rule.size(given),
            )
