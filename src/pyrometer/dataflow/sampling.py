"""What a bounded look at a tensor's elements tells."""

from __future__ import annotations

import hashlib

import torch

from pyrometer.quantity import Ratio

SAMPLE = 4_096
"""Elements to look at: a share of a hundredth is known to about a sixth of itself."""

DIGESTED = 256
"""Elements that a digest is made of, where a tensor has more."""

SLOW_NEXT_TO_ZERO = frozenset({torch.float32, torch.float64})
"""What processors compute with as it is; smaller types are widened before."""

ROWS = 64
"""Rows that are looked at as a whole."""

MOST_COUNTED = 1 << 20
"""Elements that are counted one by one."""


def zero_share(tensor: torch.Tensor) -> Ratio:
    """The share of zeros, in a sample where the tensor is large.

    >>> zero_share(torch.tensor([0.0, 1.0, 0.0, 0.0]))
    0.75
    """
    looked = sample(tensor, SAMPLE)
    return 1 - float(torch.count_nonzero(looked)) / max(looked.numel(), 1)


def masked_share(mask: torch.Tensor) -> Ratio:
    """The share of places that the mask of an attention leaves out, in a sample where it is large.

    >>> masked_share(torch.tensor([0.0, float("-inf")])), masked_share(torch.tensor([True, False, False, False]))
    (0.5, 0.75)
    """
    looked = sample(mask, SAMPLE)
    lowest = 0 if looked.dtype == torch.bool else torch.finfo(looked.dtype).min / 2
    return float((looked <= lowest).float().mean()) if looked.numel() else 0.0


def is_one_hot(tensor: torch.Tensor) -> bool:
    """Whether each of some rows holds a single 1 and zeros.

    >>> is_one_hot(torch.eye(5)), is_one_hot(2 * torch.eye(5))
    (True, False)
    """
    if tensor.dim() < 2:
        return False
    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.is_contiguous() else tensor.flatten(0, -2)
    looked = rows[:: max(1, len(rows) // ROWS)]
    ones = (looked == 1).sum(1) == 1
    return bool((ones & (torch.count_nonzero(looked, dim=1) == 1)).all())


def constant_tail(tensor: torch.Tensor) -> int:
    """Columns at the end of the second dimension that hold one and the same value in all rows.

    >>> constant_tail(torch.tensor([[4, 0, 0], [5, 6, 0]]))
    1
    """
    last = tensor[0, -1] if tensor.dim() == 2 else tensor[0, -1, 0]
    differs = (tensor != last).flatten(2).any(2) if tensor.dim() > 2 else tensor != last
    columns = differs.any(0).nonzero()
    return tensor.shape[1] - (int(columns[-1]) + 1 if len(columns) else 0)


def distinct(tensor: torch.Tensor) -> int:
    """How many different values it holds."""
    return len(torch.unique(tensor))


def digest(tensor: torch.Tensor) -> int:
    """Tells most different contents of one shape apart.

    >>> digest(torch.ones(3)) == digest(torch.ones(3)), digest(torch.ones(3)) == digest(torch.zeros(3))
    (True, False)
    """
    # A copy, as one element whose stride is 0 counts as contiguous and cannot be read as bytes.
    looked = sample(tensor).cpu().clone(memory_format=torch.contiguous_format)
    held = looked.view(torch.uint8).numpy().tobytes()
    return int.from_bytes(hashlib.blake2b(held, digest_size=7).digest())


def subnormal_share(tensor: torch.Tensor) -> Ratio:
    """The share of numbers that a processor computes with slowly, since they are next to zero without being it.

    >>> subnormal_share(torch.tensor([1e-40, 0.0, 1.0, -1e-39]))
    0.5
    """
    if tensor.dtype not in SLOW_NEXT_TO_ZERO or tensor.device.type != "cpu":
        return 0.0
    sizes = sample(tensor).abs()
    return float(((sizes > 0) & (sizes < torch.finfo(sizes.dtype).tiny)).float().mean())


def sample(tensor: torch.Tensor, most: int = DIGESTED) -> torch.Tensor:
    """All elements, or some at places that depend on the shape alone."""
    tensor = tensor.detach()
    if tensor.numel() <= most:
        return tensor.flatten()
    generator = torch.Generator(device=tensor.device).manual_seed(1)
    at = [torch.randint(size, (most,), generator=generator, device=tensor.device) for size in tensor.shape]
    return tensor[tuple(at)]
