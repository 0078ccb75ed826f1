"""How long torch.compile's compilers have worked in this process; the one place that asks torch for it.

`torch._dynamo.utils.calculate_time_spent` is private: it exists from torch 2.5 on. Where it is missing the compile time is
`None`, and reports say so.
"""

from __future__ import annotations

import sys
from typing import Any

from pyrometer.quantity import Seconds


def compile_seconds() -> Seconds | None:
    """Seconds spent so far compiling frames and backward graphs; 0 when nothing was compiled, `None` if unknown."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return 0.0
    spent = getattr(utils, "calculate_time_spent", None)
    if spent is None:
        return None
    times: dict[str, float] = spent()
    return float(times.get("total_wall_time", 0.0))
