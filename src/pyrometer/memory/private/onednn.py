"""What oneDNN does on this processor: torch asks itself, and has no public name for the answer."""

from __future__ import annotations

import torch


def computes_bfloat16() -> bool:
    """Whether oneDNN takes operands in bfloat16 here; torch leaves them to plain products otherwise."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    asked = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return bool(asked()) if asked is not None else torch.backends.cpu.get_cpu_capability() == "AVX512"


def computes_in_tiles() -> bool:
    """Whether oneDNN multiplies bfloat16 in tiles (AMX) here."""
    asked = getattr(torch.cpu, "_is_amx_tile_supported", None)
    return asked is not None and bool(asked())
