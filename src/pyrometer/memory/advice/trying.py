"""Running a program as if some of its lines copied nothing: does it compute the same, and what does it take?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from pyrometer.errors import UserProgramError
from pyrometer.workload.changes.results import results_of
from pyrometer.workload.failure import user_code
from pyrometer.workload.training import Training
from pyrometer.workload.whereabouts.lines import site_of
from pyrometer.workload.whereabouts.nearest import nearest_point
from pyrometer.workload.workload import Workload

FAT_LOSSES = (
    functional.mse_loss,
    functional.smooth_l1_loss,
    functional.binary_cross_entropy,
    functional.soft_margin_loss,
)
"""Losses whose mean or sum on the CPU keeps the storage of all values."""

COPYING = (torch.Tensor.clone, torch.Tensor.contiguous, torch.Tensor.repeat)


class WithoutCopies(TorchFunctionMode):
    """Let `clone`, `contiguous` and `repeat` of given lines hand out what they were called on, or a view of it.

    Args:
        places: lines as `file:line`.
    """

    def __init__(self, places: set[str]) -> None:
        super().__init__()
        self._places = places

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in COPYING and self._is_chosen():
            if func is not torch.Tensor.repeat:
                return args[0]
            view = _expanded(*args, **(kwargs or {}))
            if view is not None:
                return view
        return func(*args, **(kwargs or {}))

    def _is_chosen(self) -> bool:
        point = nearest_point()
        return point is not None and site_of(point).place in self._places


class ClonedLosses(TorchFunctionMode):
    """Let losses that are reduced in the storage of their unreduced values be copied out of it."""

    def __init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result.clone() if func in FAT_LOSSES and result.dim() == 0 else result


def _expanded(tensor: torch.Tensor, *sizes: Any) -> torch.Tensor | None:
    """A repeated tensor as a view; `None` where more than dimensions of length one are repeated."""
    times = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    own = (1,) * (len(times) - tensor.dim()) + tuple(tensor.shape)
    if any(count != 1 and size != 1 for count, size in zip(times, own, strict=True)):
        return None
    return tensor.expand(*(count * size for count, size in zip(times, own, strict=True)))


def same_without_copies(work: Workload, places: set[str]) -> bool:
    """Whether a program computes the same, to the last bit, when lines copy nothing.

    Raises:
        InputError: the workload cannot be prepared.
        UserProgramError: the program fails as it is written.
    """
    written = list(_outcome(work))
    try:
        with WithoutCopies(places):
            changed = list(_outcome(work))
    except UserProgramError:
        return False  # a view of another layout, for example, needs the copy
    return len(written) == len(changed) and all(map(torch.equal, written, changed))


def _outcome(work: Workload, seed: int = 0) -> Iterator[torch.Tensor]:
    """What a program computes: gradients and buffers of a training, else what two steps return."""
    if isinstance(work, Training):
        yield from (tensor for step in results_of(work, seed) for tensor in step.values())
        return
    with work.open() as session:
        session.activate()
        torch.manual_seed(seed)
        for _ in range(2):
            with user_code("the step"):
                output = session.step(session.prepare())
            for leaf in pytree.tree_leaves(output):
                if isinstance(leaf, torch.Tensor):
                    yield leaf.detach().clone()
