"""What one would do by hand: checkpoint every k-th block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyrometer.tuning.checkpointing.model import StepModel
from pyrometer.tuning.checkpointing.solve import Choice, choice_of


def every_k_choices(model: StepModel, blocks: Sequence[int]) -> Iterator[tuple[int, Choice]]:
    """For each k the choice of every k-th block, from the first on, recomputed fully."""
    full = {option.module: index for index, option in enumerate(model.options) if option.policy == "full"}
    for k in range(1, len(blocks) + 1):
        chosen = [full[block] for block in blocks[::k] if block in full]
        if chosen:
            yield k, choice_of(model, chosen)
