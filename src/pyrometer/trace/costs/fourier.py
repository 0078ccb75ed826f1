"""Fast Fourier transforms, by the customary count."""

from __future__ import annotations

import math

from pyrometer.trace.costs.call import Call
from pyrometer.trace.costs.registry import Cost, cost


@cost(
    "aten::_fft_c2c",
    "aten::_fft_r2c",
    "aten::_fft_c2r",
    source="5·n·log₂ n over the transformed sizes; half for real data",
)
def transform(call: Call) -> Cost:
    """`(input, dims, …)`."""
    x, dims = call.tensor(0), call.ints(1)
    n = math.prod(x.shape[dim] for dim in dims if -len(x.shape) <= dim < len(x.shape))
    flop = int(5 * x.numel * math.log2(max(n, 1)))
    complex_bytes = 2 * x.item_bytes if x.dtype.startswith("float") else x.item_bytes
    if call.name.endswith("c2c"):
        return Cost(flop, x.num_bytes, x.numel * x.item_bytes, x.dtype)
    if call.name.endswith("r2c"):  # half of the spectrum is kept
        return Cost(flop // 2, x.num_bytes, (x.numel // 2 + 1) * complex_bytes, x.dtype)
    return Cost(flop // 2, x.num_bytes, x.numel * x.item_bytes, x.dtype)
