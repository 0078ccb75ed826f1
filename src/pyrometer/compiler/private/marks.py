"""Marks on tensors that keep a dimension open when they are compiled for the first time.

`torch._dynamo.mark_dynamic` and `maybe_mark_dynamic` are documented although they live in a private module; both exist
since torch 2.1.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch


def mark_dynamic(tensor: torch.Tensor, dims: Iterable[int]) -> None:
    """Ask for any size of these dimensions; compiling fails where the program needs a fixed one."""
    from torch import _dynamo

    for dim in dims:
        _dynamo.mark_dynamic(tensor, dim % tensor.dim())
