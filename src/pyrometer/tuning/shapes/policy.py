"""How buckets behave: limits, what happens to sizes that fit none, and how often results are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.quantity import Bytes
from pyrometer.workload.target import nearest

CHOICES = {
    "too_long": ("dynamic", "crop", "error"),
    "on_refusal": ("raise", "dynamic"),
    "when_slower": ("note", "switch"),
}


@dataclass(frozen=True)
class BucketPolicy:
    """How buckets behave.

    Attributes:
        max_graphs: most graphs with fixed sizes that are held; the least recently used goes first.
        max_bytes: most memory that holding them may take, as far as it grew while they were compiled.
        align: edges are multiples of this; one number, or one per size by name.
        cover: largest size that must fit, by the name of the size.
        too_long: sizes beyond the last edge: `dynamic` (one graph for any size), `crop` (cut the inputs) or `error`.
        on_refusal: when padding changes the result: `raise`, or go on with the `dynamic` graph.
        learn_calls: without a sample or a plan, calls that the dynamic graph serves while sizes are learned.
        rare_calls: inputs that fit a bucket but not its graph (another dtype, another fixed size) are compiled when they
            come so many times; until then the dynamic graph serves them.
        check_every: calls of a bucket after which its result is compared with the unpadded one again; 0 for only the first.
        hostile_values: check the first padded call of a bucket with values of other signs and scales too; without it, only with
            those that come. To be switched off for models that take, say, positive numbers alone, or where a wrong value
            is fatal (indices in floating point on a GPU).
        tolerance: largest relative error that is legal; by default by dtype, 1e-4 for float32.
        step_cost: what a step costs at a size (at two sizes where two vary), never falling; the size itself by default.
        measure: let `precompile` choose the edges by the time that steps take, where they were learned by size alone, and compare
            buckets with the dynamic graph, padding to one size and the model itself.
        when_slower: where `precompile` measured another way to be faster than buckets: leave it at a `note`, or `switch` all
            calls to that way.
        compile_cost: of one graph, in the unit of `step_cost`; with it the number of graphs is chosen by what they save.
        expected_calls: over which `compile_cost` is spread; without that cost `precompile` measures it.
    """

    max_graphs: int = 8
    max_bytes: Bytes | None = None
    align: int | Mapping[str, int] = 1
    cover: Mapping[str, int] = field(default_factory=dict)
    too_long: str = "dynamic"
    on_refusal: str = "raise"
    learn_calls: int = 64
    rare_calls: int = 3
    check_every: int = 1000
    hostile_values: bool = True
    tolerance: float | None = None
    step_cost: Callable[..., float] | None = None
    measure: bool = True
    when_slower: str = "note"
    compile_cost: float | None = None
    expected_calls: int | None = None

    def __post_init__(self) -> None:
        for name, legal in CHOICES.items():
            if getattr(self, name) not in legal:
                raise InputError(f"{name}: got {getattr(self, name)!r}; legal are {', '.join(legal)}")
        smallest = {"max_graphs": 1, "learn_calls": 1, "rare_calls": 1, "check_every": 0}
        for name, least in smallest.items():
            require_count(name, getattr(self, name), least)

    def alignment(self, axis: str) -> int:
        """What the edges of a size are multiples of."""
        return self.align if isinstance(self.align, int) else self.align.get(axis, 1)

    def cost(self, sizes: tuple[int, ...]) -> float:
        """What a step costs at these sizes."""
        if self.step_cost is not None and len(sizes) <= 2:
            return self.step_cost(*sizes)
        return float(math.prod(sizes))


def policy_from(settings: Mapping[str, Any]) -> BucketPolicy:
    """A policy from keyword arguments.

    Raises:
        InputError: an unknown name, or an illegal value.

    >>> policy_from({"max_graph": 4})
    Traceback (most recent call last):
    pyrometer.errors.InputError: max_graph: no such setting of buckets; did you mean 'max_graphs'?
    """
    known = [part.name for part in fields(BucketPolicy)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        hint = nearest(unknown[0], known) or f"; legal are {', '.join(known)}"
        raise InputError(f"{unknown[0]}: no such setting of buckets{hint}")
    return BucketPolicy(**settings)
