"""Peaks of arithmetic: matrix products and convolutions through torch, at the size where they run best.

A product of two `n×n` matrices is counted as `2n³` FLOP, a 3×3 convolution as a direct one, so that an algorithm with
less arithmetic (Winograd) may exceed what the device can calculate. The only private torch API here is
`torch._int_mm`; a torch without it has no int8 peak.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from pyrometer.hardware.peaks import Peak
from pyrometer.hardware.precision import float32_precision
from pyrometer.hardware.rig import Probe, Rig, climb, rate_peak, repeat
from pyrometer.quantity import Seconds

MATMUL_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int8)
CONV_DTYPES = (torch.float32, torch.bfloat16, torch.float16)

_MATMUL_SIZES = {"cpu": (256, 512, 1024, 2048, 4096, 8192), "cuda": (1024, 2048, 4096, 8192, 16384)}
_CONV_BATCHES = {"cpu": (1, 2, 4, 8, 16, 32, 64), "cuda": (16, 32, 64, 128, 256, 512)}
_CONV_CHANNELS = {"cpu": 64, "cuda": 256}
_CONV_PIXELS = 56  # the second stage of a ResNet on 224×224 images


def matmul_peak(dtype: torch.dtype, rig: Rig, budget_s: Seconds) -> Peak:
    """FLOP/s of `torch.mm` on square matrices (int8: operations/s of `torch._int_mm`)."""
    if dtype == torch.int8 and not hasattr(torch, "_int_mm"):
        raise RuntimeError("this torch has no integer matrix product")
    # Two operands, a result, and the float32 values that they are made from; int8 sums up in int32.
    bytes_per_element = 4 + 2 * dtype.itemsize + max(dtype.itemsize, 4 if dtype == torch.int8 else 0)
    sizes = [n for n in _MATMUL_SIZES[rig.device.type] if n * n * bytes_per_element <= rig.memory_bytes]

    def time_at(n: int) -> Seconds:
        return rig.timer(_matmul(n, dtype, rig.device))

    n, rates = _peak(time_at, lambda n: 2.0 * n**3, sizes, budget_s)
    return rate_peak(rates, f"matmul {n}×{n}×{n}")


def conv_peak(dtype: torch.dtype, rig: Rig, budget_s: Seconds) -> Peak:
    """FLOP/s of a 3×3 `conv2d` with as many output as input channels, channels last."""
    channels = _CONV_CHANNELS[rig.device.type]
    num_elements = channels * _CONV_PIXELS**2
    batches = [
        b
        for b in _CONV_BATCHES[rig.device.type]
        if b * num_elements * (4 + 2 * dtype.itemsize) <= rig.memory_bytes
    ]

    def time_at(batch: int) -> Seconds:
        return rig.timer(_conv(batch, channels, dtype, rig.device))

    batch, rates = _peak(time_at, lambda batch: 2.0 * batch * num_elements * channels * 9, batches, budget_s)
    return rate_peak(rates, f"conv 3×3, {batch}×{channels}×{_CONV_PIXELS}×{_CONV_PIXELS}")


def on_cuda(probe: Probe, *, tf32: bool) -> Probe:
    """A probe of float32 arithmetic on CUDA, in TF32 or in full precision whatever the caller's setting is."""

    def measure(rig: Rig, budget_s: Seconds) -> Peak:
        # ROCm has other switches, and takes these without doing anything.
        if tf32 and (torch.version.hip or torch.cuda.get_device_capability(rig.device) < (8, 0)):
            raise RuntimeError("this device has no TF32")
        with float32_precision(tf32=tf32):
            return probe(rig, budget_s)

    return measure


def _peak(
    time_at: Callable[[int], Seconds], work_of: Callable[[int], float], sizes: list[int], budget_s: Seconds
) -> tuple[int, list[float]]:
    """Climb on two thirds of the budget; spend the rest at the best size, for the spread."""
    if not sizes:
        raise RuntimeError("too little free memory for the smallest size")
    size, rate = climb(time_at, work_of, sizes, budget_s * 2 / 3)
    return size, [rate, *repeat(lambda: work_of(size) / time_at(size), budget_s / 3)]


def _matmul(n: int, dtype: torch.dtype, device: torch.device) -> Callable[[], object]:
    a = _filled(n, n, device)
    if dtype == torch.int8:
        left = (a * 127).to(torch.int8)
        # cuBLASLt wants the right operand column by column.
        return lambda: torch._int_mm(left, left.t())  # noqa: SLF001 - the one private API here, see above
    x, out = a.to(dtype), torch.empty(n, n, dtype=dtype, device=device)
    y = x.clone()
    return lambda: torch.mm(x, y, out=out)


def _conv(batch: int, channels: int, dtype: torch.dtype, device: torch.device) -> Callable[[], object]:
    shape = (batch, channels, _CONV_PIXELS, _CONV_PIXELS)
    x = (
        _filled(batch * channels, _CONV_PIXELS**2, device)
        .view(shape)
        .to(dtype, memory_format=torch.channels_last)
    )
    weight = _filled(channels, channels * 9, device).view(channels, channels, 3, 3)
    weight = weight.to(dtype, memory_format=torch.channels_last)
    return lambda: functional.conv2d(x, weight, padding=1)


def _filled(rows: int, columns: int, device: torch.device) -> torch.Tensor:
    """Values in −1…1 without drawing random numbers; on zeros a GPU clocks higher than on real data."""
    ramp = [torch.linspace(-1, 1, n, dtype=torch.float32, device=device) for n in (rows, columns)]
    return ramp[0][:, None] * ramp[1]
