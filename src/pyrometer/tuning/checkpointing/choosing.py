"""From a model of the step to one choice of modules, by the strategy that was asked for. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.tuning.checkpointing.model import StepModel
from pyrometer.tuning.checkpointing.solve import Choice, cheapest, choice_of, lowest

Strategy: TypeAlias = Literal["optimal", "every-k", "adaptive"]


@dataclass(frozen=True)
class Wish:
    """What was asked for."""

    budget_bytes: Bytes | None
    max_slowdown: Ratio | None
    strategy: Strategy = "optimal"

    def limit_s(self, step_s: Seconds) -> Seconds:
        """How much longer a step may become."""
        return math.inf if self.max_slowdown is None else (self.max_slowdown - 1) * step_s


def choose(
    model: StepModel, wish: Wish, blocks: Sequence[int], limit_bytes: Bytes | None, limit_s: Seconds
) -> Choice:
    """The choice of a strategy within limits; of those over the limit of bytes the lowest, where none is within it."""
    if wish.strategy == "optimal":
        fitting = cheapest(model, limit_bytes, limit_s) if limit_bytes is not None else None
        return fitting or lowest(model, limit_s)
    if wish.strategy == "every-k":
        choices = [choice for _, choice in every_k_choices(model, blocks)]
    else:
        order = switching_order(model, blocks)
        choices = [choice_of(model, order[:number]) for number in range(1, len(order) + 1)]
    return best_of([choice_of(model, ()), *choices], limit_bytes, limit_s)


def every_k_choices(model: StepModel, blocks: Sequence[int]) -> Iterator[tuple[int, Choice]]:
    """What one would do by hand: for each k every k-th block, from the first on, recomputed fully; k = 1 is every block."""
    full = _fully_recomputed(model)
    for k in range(1, len(blocks) + 1):
        chosen = [full[block] for block in blocks[::k] if block in full]
        if chosen:
            yield k, choice_of(model, chosen)


def _fully_recomputed(model: StepModel) -> dict[int, int]:
    """The option of each module in which nothing of it is kept."""
    return {option.module: index for index, option in enumerate(model.options) if option.policy == "full"}


def switching_order(model: StepModel, blocks: Sequence[int]) -> list[int]:
    """Options of blocks, fully recomputed, by the bytes that a second of recomputation frees alone; the best first.

    Bytes are those under the model's levels, summed over time: a block that frees little at the peak of now may be
    what frees most once others are switched on.
    """
    full = _fully_recomputed(model)
    options = [full[block] for block in blocks if block in full]
    whole = model.levels()
    freed = {option: float((whole - model.levels([option])).sum()) for option in options}
    useful = [option for option in options if freed[option] > 0]
    return sorted(useful, key=lambda option: -freed[option] / model.options[option].seconds)


def best_of(choices: Sequence[Choice], limit_bytes: Bytes | None, limit_s: Seconds) -> Choice:
    """The quickest within both limits; where none keeps within that of bytes, the lowest within that of time."""
    quick = [choice for choice in choices if choice.seconds <= limit_s]
    fitting = [choice for choice in quick if limit_bytes is not None and choice.peak_bytes <= limit_bytes]
    if fitting:
        return min(fitting, key=lambda choice: (choice.seconds, choice.peak_bytes))
    return min(quick, key=lambda choice: (choice.peak_bytes, choice.seconds))
