"""The inputs of a step with other values of the same kind: what is computed from them then differs, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pyrometer.bench.cutting.values import is_plain_tensor, leaves_of, mapped

_SETTINGS = (type(None), bool, int, float, torch.dtype, torch.device, torch.Size)
"""What is given beside the data: that it is the same in each step is no accident of how the program was brought here."""


def varied(inputs: Any, seed: int) -> Any:
    """The same with the elements of its tensors and arrays in another order, so that they are still legal.

    >>> varied(torch.arange(4), seed=1).sort().values
    tensor([0, 1, 2, 3])
    """
    random = np.random.default_rng(seed)

    def change(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return _varied_tensor(leaf, random) if is_plain_tensor(leaf) else leaf
        if isinstance(leaf, np.ndarray) and leaf.size > 1 and not leaf.dtype.hasobject:
            return random.permutation(leaf.reshape(-1)).reshape(leaf.shape)
        return leaf

    return mapped(inputs, change)


def _varied_tensor(tensor: torch.Tensor, random: np.random.Generator) -> torch.Tensor:
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        if tensor.numel() > 1 and not bool((flat == flat[0]).all()):
            order = torch.from_numpy(random.permutation(tensor.numel())).to(tensor.device)
            flat = flat[order]
        elif tensor.numel() and tensor.is_floating_point():
            flat = flat + random.uniform(1e-3, 1e-2)
        elif tensor.numel() and bool(flat[0]):
            flat = flat.clone()
            flat[int(random.integers(tensor.numel()))] = 0
        if tensor.is_floating_point():
            flat = flat * random.uniform(0.9, 1.0)
        changed = torch.empty_like(tensor)
        changed.copy_(flat.reshape(tensor.shape))
    return changed.requires_grad_(tensor.requires_grad)


def is_told_apart(first: Any, second: Any) -> bool:
    """Whether all data in two sets of inputs differ, so that what is computed from them may differ."""
    pairs = list(zip(leaves_of(first), leaves_of(second), strict=False))
    data = [(a, b) for a, b in pairs if not isinstance(a, _SETTINGS)]
    return bool(data) and all(_differ(a, b) for a, b in data)


def _differ(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape != b.shape or not bool((a == b).all())
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape != b.shape or not bool((a == b).all())
    return type(a) is not type(b) or (isinstance(a, (str, bytes)) and a != b)
