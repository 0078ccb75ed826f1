"""The distribution of a tensor's values, from a sample of bounded size."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch

from pyrometer.numerics.report import ValueStatistics

Values = npt.NDArray[np.float64]

MOST_VALUES = 16_384
LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def sample(tensor: torch.Tensor, most: int = MOST_VALUES) -> Values:
    """Up to `most` values, evenly spread over a tensor, in float64 on the host."""
    flat = tensor.detach().reshape(-1)
    step = -(-flat.numel() // most) if flat.numel() else 1
    taken: Values = flat[::step].to("cpu").to(torch.float64).numpy()
    return taken


def value_statistics(tensors: Iterable[torch.Tensor]) -> ValueStatistics | None:
    """Mean, deviation and quantiles of the finite values of tensors taken together; `None` without any.

    >>> value_statistics([torch.tensor([1.0, 2.0, 3.0, float("nan")])]).mean
    2.0
    """
    parts = list(tensors)
    values = (
        np.concatenate([sample(part, MOST_VALUES // len(parts)) for part in parts]) if parts else np.empty(0)
    )
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    return ValueStatistics(
        num_values=sum(part.numel() for part in parts),
        mean=float(finite.mean()),
        std=float(finite.std()),
        quantiles=[float(level) for level in np.quantile(finite, LEVELS)],
        share_finite=finite.size / values.size,
    )
