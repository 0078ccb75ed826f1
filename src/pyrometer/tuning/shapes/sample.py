"""Samples of shapes: reading the log of a program's calls, and making inputs of such shapes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch

from pyrometer.errors import InputError
from pyrometer.text import shortened
from pyrometer.tuning.shapes.axes import Axes, Sizes

Shapes: TypeAlias = "Mapping[str, tuple[int, ...]]"
"""Input name → shape, of one call."""

LEGAL = 'one JSON object per line, input name to shape, such as {"input_ids": [8, 128]}'


def read_sample(path: str | Path) -> list[dict[str, tuple[int, ...]]]:
    """Read a file of shapes; empty lines are skipped.

    Raises:
        InputError: the file cannot be read, holds no line, or a line is something else; names file and line.
    """
    place = Path(path)
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: cannot be read ({reason}); legal is a text file with {LEGAL}") from error
    found = [_shapes(f"{path}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise InputError(f"{path}: holds no shapes; legal is {LEGAL}")
    return found


def sizes_in(axes: Axes, sample: Iterable[Shapes]) -> Counter[Sizes]:
    """How often each combination of varying sizes was seen.

    Raises:
        InputError: a call lacks a size, its inputs disagree, or a shape has too few dimensions; says which call.
    """
    return Counter(
        axes.sizes_of(shapes, f"sample, call {number}") for number, shapes in enumerate(sample, start=1)
    )


def varying_dims(sample: Iterable[Shapes]) -> dict[str, dict[int, str]]:
    """Which dimensions vary in a sample; those that are equal in every call get one name.

    >>> varying_dims([{"x": (2, 5), "y": (5,)}, {"x": (2, 7), "y": (7,)}])
    {'x': {1: 'x.1'}, 'y': {0: 'x.1'}}
    """
    columns: dict[tuple[str, int], list[int | None]] = {}
    calls = list(sample)
    for number, shapes in enumerate(calls):
        for name, shape in shapes.items():
            for dim, size in enumerate(shape):
                columns.setdefault((name, dim), [None] * len(calls))[number] = size
    names: dict[tuple[int | None, ...], str] = {}
    found: dict[str, dict[int, str]] = {}
    for (name, dim), seen in columns.items():
        if len({size for size in seen if size is not None}) > 1:
            found.setdefault(name, {})[dim] = names.setdefault(tuple(seen), f"{name}.{dim}")
    return found


def inputs_like(
    example: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], generator: torch.Generator
) -> dict[str, Any]:
    """Inputs of other shapes than the example's, of the same dtypes and devices, and with values that it might hold.

    Each tensor is filled with values drawn from the example's own, so that token numbers stay within the vocabulary and
    masks stay masks. Inputs without a shape stay as they are.

    Raises:
        InputError: a shape for an input that the example has not, or that is no tensor there.

    >>> made = inputs_like({"ids": torch.tensor([[3, 9]])}, {"ids": (1, 4)}, torch.Generator())
    >>> set(made["ids"].flatten().tolist()) <= {3, 9}, made["ids"].shape
    (True, torch.Size([1, 4]))
    """
    inputs = dict(example)
    for name, shape in shapes.items():
        value = example.get(name)
        if not isinstance(value, torch.Tensor):
            raise InputError(
                f"sample: has shapes for {name!r}, which is no tensor among the example's inputs; those are "
                f"{', '.join(key for key, given in example.items() if isinstance(given, torch.Tensor))}"
            )
        inputs[name] = drawn_like(value, shape, generator)
    return inputs


def drawn_like(example: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """A tensor of another shape, with values drawn from the example's; the same tensor where the shape is its own."""
    if tuple(example.shape) == tuple(shape):
        return example
    if example.numel() == 0:
        return example.new_zeros(shape)
    count = int(torch.Size(shape).numel())
    places = torch.randint(example.numel(), (count,), generator=generator).to(example.device)
    return example.detach().flatten()[places].reshape(shape).requires_grad_(example.requires_grad)


def _shapes(place: str, line: str) -> dict[str, tuple[int, ...]]:
    try:
        plain = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{place}: no JSON ({error.msg} at column {error.colno}); legal is {LEGAL}"
        ) from error
    if not isinstance(plain, dict) or not plain:
        raise InputError(f"{place}: got {shortened(line)}; legal is {LEGAL}")
    for name, shape in plain.items():
        whole = isinstance(shape, list) and all(type(size) is int and size >= 1 for size in shape)
        if not whole:
            raise InputError(
                f"{place}: the shape of {name!r} is {shortened(json.dumps(shape))}; legal is a list of whole numbers of at "
                "least 1, such as [8, 128]"
            )
    return {name: tuple(shape) for name, shape in plain.items()}
