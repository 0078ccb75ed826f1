"""Precision of float32 arithmetic on CUDA: IEEE, or TF32 on tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def float32_precision(*, tf32: bool) -> Iterator[None]:
    """Switch TF32 on or off for matrix products and convolutions, and put both settings back at the end."""
    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    if hasattr(matmul, "fp32_precision"):
        # Since torch 2.9; the older switches warn or raise once these have been used.
        switches, name = (matmul, cudnn.conv), "fp32_precision"
        value: bool | str = "tf32" if tf32 else "ieee"
    else:
        switches, name, value = (matmul, cudnn), "allow_tf32", tf32
    found = [getattr(switch, name) for switch in switches]
    try:
        for switch in switches:
            setattr(switch, name, value)
        yield
    finally:
        for switch, before in zip(switches, found, strict=True):
            setattr(switch, name, before)
