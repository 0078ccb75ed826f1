"""What batches hold: bytes, many small tensors, wider types than their values need, numbers in lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pyrometer.loading.profiling.fetching import MadeBatch
from pyrometer.loading.profiling.leaves import leaves_of, num_bytes_of, tensor_leaves
from pyrometer.loading.profiling.record import BatchContents, NarrowerType, NumberList
from pyrometer.quantity import Bytes, Seconds

COPY_LATENCY_S = 10e-6
"""Cost of starting one copy to a device, beside its bytes: typical of PCIe devices, not measured here."""
COPY_BYTES_PER_S = 12e9
"""Rate of such a copy from page-locked memory: PCIe 3.0 with 16 lanes, not measured here."""

MIN_LIST = 16
MIN_IMAGE = 4096
_MOST_VALUES = 2**18
_MOST_BATCHES = 3


def batch_contents(batches: Sequence[MadeBatch]) -> BatchContents:
    """Bytes and tensors of the first batch, types that hold for the first three, lists of numbers in the first sample."""
    tensors = tensor_leaves(batches[0].batch)
    sizes = [num_bytes_of(tensor) for _, tensor in tensors]
    samples = [sample for batch in batches for sample in batch.samples]
    return BatchContents(
        num_tensors=len(tensors),
        num_bytes=sum(sizes),
        sample_bytes=int(np.mean([num_bytes_of(sample) for sample in samples])),
        median_tensor_bytes=int(np.median(sizes)) if sizes else 0,
        transfer_s=transfer_time(sizes),
        packed_transfer_s=transfer_time([sum(sizes)]),
        narrower=narrower_types([batch.batch for batch in batches[:_MOST_BATCHES]]),
        number_lists=number_lists(batches[0].samples[0]),
    )


def transfer_time(
    sizes: Sequence[Bytes],
    *,
    latency_s: Seconds = COPY_LATENCY_S,
    bytes_per_s: float = COPY_BYTES_PER_S,
) -> Seconds:
    """Predicted time to copy tensors of these sizes to a device one after the other: Σ (latency + bytes / rate).

    >>> round(transfer_time([1_200_000] * 2) * 1e6), round(transfer_time([2_400_000]) * 1e6)
    (220, 210)
    """
    return sum(latency_s + size / bytes_per_s for size in sizes)


def narrower_types(batches: Sequence[Any]) -> list[NarrowerType]:
    """Tensors whose values, in every batch given, fit a smaller dtype."""
    kinds: list[NarrowerType] | None = None
    for batch in batches:
        here = [
            kind for path, tensor in tensor_leaves(batch) if (kind := narrower_type(path, tensor)) is not None
        ]
        same = {(one.path, one.fits, one.scale): one for one in here}
        if kinds is None:
            kinds = here
        else:
            kinds = [
                min((one, same[key]), key=lambda each: each.exact)
                for one in kinds
                if (key := (one.path, one.fits, one.scale)) in same
            ]
    return kinds or []


def narrower_type(path: str, tensor: torch.Tensor) -> NarrowerType | None:
    """A smaller dtype for one tensor; `None` where its own is right.

    Tensors of three dimensions and more count as images where they hold at most 256 different values (per channel), and whole
    numbers that fit a byte. At most 262,144 values are looked at. Float64 is always wider than what devices compute with by default.

    >>> narrower_type("x", torch.zeros(2, dtype=torch.float64)).fits
    'torch.float32'
    >>> narrower_type("y", torch.arange(3)) is None  # labels
    True
    """
    fits, exact, scale = _fitting(tensor)
    if fits is None:
        return None
    size = num_bytes_of(tensor)
    saved = size - tensor.numel() * fits.itemsize
    return NarrowerType(
        path=path,
        dtype=str(tensor.dtype),
        fits=str(fits),
        exact=exact,
        num_bytes=size,
        saved_bytes=saved,
        scale=scale,
    )


def number_lists(sample: Any) -> list[NumberList]:
    """Lists and tuples of at least 16 Python numbers in a sample: a loader makes one tensor of every place in them.

    >>> number_lists({"box": [1.0] * 20, "label": 3})
    [NumberList(path="['box']", length=20)]
    """
    lengths: dict[str, int] = {}
    for path, leaf in leaves_of(sample):
        if isinstance(leaf, (int, float, np.number)) and path.endswith("]") and not path.endswith("']"):
            owner = path[: path.rindex("[")]
            lengths[owner] = lengths.get(owner, 0) + 1
    return [NumberList(path=path, length=length) for path, length in lengths.items() if length >= MIN_LIST]


def _fitting(tensor: torch.Tensor) -> tuple[torch.dtype | None, bool, float | None]:
    """A smaller dtype, whether it is exact, and the factor to come back."""
    if tensor.numel() == 0:
        return None, True, None
    is_image = tensor.ndim >= 3 and tensor.numel() >= MIN_IMAGE
    values = tensor if tensor.numel() <= _MOST_VALUES else tensor[: max(1, _MOST_VALUES // tensor[0].numel())]
    if is_image and tensor.dtype in {torch.int16, torch.int32, torch.int64}:
        return _smaller_integer(values), True, None
    if is_image and tensor.dtype in {torch.float16, torch.bfloat16, torch.float32, torch.float64}:
        eight_bit = _eight_bit(values)
        if eight_bit is not None:
            return torch.uint8, *eight_bit
    if tensor.dtype == torch.float64:
        same = bool((values.to(torch.float32).to(torch.float64) == values).all())
        return torch.float32, same, None
    return None, True, None


def _smaller_integer(values: torch.Tensor) -> torch.dtype | None:
    low, high = int(values.min()), int(values.max())
    for dtype in (torch.uint8, torch.int16, torch.int32):
        limits = torch.iinfo(dtype)
        if dtype.itemsize < values.dtype.itemsize and limits.min <= low and high <= limits.max:
            return dtype
    return None


def _eight_bit(values: torch.Tensor) -> tuple[bool, float | None] | None:
    """Whether bytes can be brought back exactly, and by which factor; `None` where there is more in it than bytes."""
    channels = _by_channel(values)
    # A few values first: most tensors of real numbers show more than 256 different ones at once.
    if any(len(torch.unique(channel[:2048])) > 256 for channel in channels):
        return None
    counts = [len(torch.unique(channel)) for channel in channels]
    if max(counts) > 256 or max(counts) < 2 or not bool(torch.isfinite(values).all()):
        return None
    for factor in (1.0, 255.0):
        scaled = values.to(torch.float64) * factor
        whole = scaled.round()
        if (
            bool((whole >= 0).all())
            and bool((whole <= 255).all())
            and bool(((scaled - whole).abs() < 0.02).all())
        ):
            back = whole.to(values.dtype) / factor
            return bool((back == values).all()), None if factor == 1.0 else 1 / factor
    return False, None


def _by_channel(values: torch.Tensor) -> list[torch.Tensor]:
    if values.ndim == 4 and values.shape[1] <= 4:
        return [values[:, channel].reshape(-1) for channel in range(values.shape[1])]
    if values.shape[-1] <= 4:
        return [values[..., channel].reshape(-1) for channel in range(values.shape[-1])]
    return [values.reshape(-1)]
