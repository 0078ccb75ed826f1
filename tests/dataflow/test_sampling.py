"""Looks at a tensor's elements, however they lie in memory."""

from __future__ import annotations

import pytest
import torch

from pyrometer.dataflow.sampling import digest


@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize("size", [0, 1, 3, 5_000])
def test_repeated_and_strided_elements_are_read_like_any_other(size: int, dtype: torch.dtype) -> None:
    plain = torch.ones(size, dtype=dtype)
    repeated = torch.ones(1, dtype=dtype).as_strided((size,), (0,))
    every_other = torch.ones(2 * size, dtype=dtype)[::2]
    assert digest(repeated) == digest(every_other) == digest(plain)
    if size:
        assert digest(torch.zeros(size, dtype=dtype)) != digest(plain)
