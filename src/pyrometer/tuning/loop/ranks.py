"""What the processes of one training agree on; without `torch.distributed` there is one, which agrees with itself."""

from __future__ import annotations

from typing import TypeVar

import torch.distributed as dist

T = TypeVar("T")


def world() -> tuple[int, int]:
    """This process's rank, and how many there are."""
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


def gathered(value: T) -> list[T]:
    """Everyone's value, by rank; all have to ask at the same moment."""
    num_ranks = world()[1]
    if num_ranks == 1:
        return [value]
    values: list[T] = [value] * num_ranks
    dist.all_gather_object(values, value)
    return values
