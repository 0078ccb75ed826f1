"""`micro_batches`: each batch computed in parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import NotApplicableError, UserProgramError
from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.changes.micro_batches import micro_batches
from pyrometer.workload.inputs import Arguments, leading_dimension

_SHARES = (4, 16)
_SMALLEST_BATCH = 4


@lever
class MicroBatches(Lever):
    """Compute a batch as several smaller ones."""

    name = "micro_batches"
    title = "compute each batch in parts of fewer samples"
    why = (
        "Activations of a few samples stay in a cache, or within the memory that is allowed, where those of the whole batch do not. Smaller "
        "products use the device less well, and each part costs the calls of all operators: on a GPU it seldom pays in time."
    )
    stage = "memory"
    place = "settings"
    prior = 1.0
    pasted = ("# in place of model(x): torch.cat([model(part) for part in x.split($samples)])",)

    def refuses(self, subject: Subject) -> str | None:
        """There must be a batch to split, each sample of which is computed by itself."""
        size = leading_dimension(subject.example())
        if size is None or size < _SMALLEST_BATCH:
            return f"the batch has {size or 'no'} samples; {_SMALLEST_BATCH} are the fewest to split"
        return None

    def choices(self, subject: Subject) -> list[Parameters]:
        """A quarter of the batch, and a sixteenth."""
        size = leading_dimension(subject.example()) or 1
        return [{"samples": samples} for samples in dict.fromkeys(max(1, size // share) for share in _SHARES)]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Lay the loop over the parts around whatever computes the model."""
        if subject.fixed_shapes:
            raise NotApplicableError(
                "micro_batches: the model takes no other size of the batch than the one it has"
            )
        subject.model = InParts(subject.model, parameters["samples"])

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The last call came in parts."""
        assert isinstance(subject.model, InParts)
        return None if subject.model.num_parts > 1 else "the batch came in one part"


class InParts(nn.Module):
    """Calls a model with parts of each batch, and joins what it returns.

    Attributes:
        num_parts: of the last call.
    """

    def __init__(self, model: nn.Module, samples: int) -> None:
        super().__init__()
        self.model = model
        self.num_parts = 0
        self._samples = samples

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute part after part."""
        size = leading_dimension(Arguments(args, kwargs)) or 1
        self.num_parts = -(-size // self._samples)
        if self.num_parts == 1:
            return self.model(*args, **kwargs)
        parts = micro_batches((args, kwargs), self.num_parts)
        return _joined([self.model(*part_args, **part_kwargs) for part_args, part_kwargs in parts], size)


def _joined(outputs: list[Any], size: int) -> Any:
    leaves, specs = zip(*map(pytree.tree_flatten, outputs), strict=True)
    joined = []
    for column in zip(*leaves, strict=True):
        tensors = [leaf for leaf in column if isinstance(leaf, torch.Tensor)]
        if not tensors:
            joined.append(column[0])
        elif any(tensor.dim() == 0 for tensor in tensors) or sum(map(len, tensors)) != size:
            raise UserProgramError(
                "an output holds no row for each sample, so that parts of a batch cannot be joined"
            )
        else:
            joined.append(torch.cat(tensors))
    return pytree.tree_unflatten(joined, specs[0])
