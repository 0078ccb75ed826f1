"""Inputs on which a changed model has to compute what the model computed before, edge cases among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import torch

from pyrometer.workload.inputs import Arguments, adapted, leading_dimension
from pyrometer.workload.variant import Variant

LARGE = 8.0
"""By how much inputs are scaled for the case of large values: far enough for float16 to overflow in squares of activations."""

NUM_FRESH = 2
ODD_BATCH = 3


Takes: TypeAlias = Callable[[Arguments], bool]
"""Whether the program as it is takes inputs."""


class Case(NamedTuple):
    """One set of inputs."""

    label: str
    arguments: Arguments
    resized: bool = False


def cases_of(
    source: Callable[[], Arguments], fixed: bool, seed: int, takes: Takes = lambda _: True
) -> Iterator[Case]:
    """The cases of an inference workload: as given, fresh values, zeros, large values, a single sample, an odd number of samples.

    Fresh values keep what makes inputs legal: whole numbers and booleans are those given, in another order where the program takes
    that; floating-point numbers have the mean and the spread of those given.
    """
    given = source()
    yield Case("as given", given)
    generator = torch.Generator().manual_seed(seed)
    for number in range(NUM_FRESH):
        fresh = _refreshed(given, generator, takes) if fixed else source()
        yield Case(f"fresh values {number + 1}", fresh)
    yield Case("zeros", _floats_mapped(given, torch.zeros_like))
    yield Case("large values", _floats_mapped(given, lambda tensor: tensor * LARGE))
    batch = leading_dimension(given)
    for size, label in ((1, "a single sample"), (ODD_BATCH, f"{ODD_BATCH} samples")):
        if batch is not None and batch != size:
            yield Case(label, adapted(given, Variant(batch_size=size)), resized=True)


def refreshed(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A tensor of other values that are as legal: permuted where they are whole, of the same mean and spread where not."""
    if not tensor.is_floating_point():
        flat = tensor.reshape(-1)
        order = torch.randperm(flat.numel(), generator=generator).to(flat.device)
        return flat[order].reshape(tensor.shape)
    noise = torch.randn(tensor.shape, generator=generator).to(tensor.device)
    finite = tensor[tensor.isfinite()].to(torch.float64)
    if finite.numel() < 2:
        return tensor.clone()
    mean, spread = float(finite.mean()), float(finite.std())
    low, high = float(finite.min()), float(finite.max())
    return (noise * spread + mean).clamp(low, high).to(tensor.dtype)


def refreshed_source(
    source: Callable[[], Arguments], seed: int, takes: Takes = lambda _: True
) -> Callable[[], Arguments]:
    """Arguments of the same shapes and other values, which the program takes; the same each time."""
    fresh = _refreshed(source(), torch.Generator().manual_seed(seed), takes)
    return lambda: fresh


def _refreshed(given: Arguments, generator: torch.Generator, takes: Takes) -> Arguments:
    """Rows of tables of different sizes, say, cannot change places: then only floating-point numbers are drawn anew."""
    fresh = given.mapped(lambda tensor: refreshed(tensor, generator))
    if all(tensor.is_floating_point() for tensor in given.tensors()) or takes(fresh):
        return fresh
    return _floats_mapped(given, lambda tensor: refreshed(tensor, generator))


def _floats_mapped(arguments: Arguments, change: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    return arguments.mapped(lambda tensor: change(tensor) if tensor.is_floating_point() else tensor)
