"""Precision of float32 arithmetic on CUDA: IEEE, or TF32 on tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def float32_precision(*, tf32: bool) -> Iterator[None]:
    """Switch TF32 on or off for matrix products and convolutions, and put both settings back at the end."""
    backends: Any = torch.backends
    switches = (backends.cuda.matmul, backends.cudnn.conv)
    found = [switch.fp32_precision for switch in switches]
    try:
        for switch in switches:
            switch.fp32_precision = "tf32" if tf32 else "ieee"
        yield
    finally:
        for switch, before in zip(switches, found, strict=True):
            switch.fp32_precision = before
