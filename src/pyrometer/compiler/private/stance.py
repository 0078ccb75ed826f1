"""Whether torch.compile is switched off at this moment, and by what.

The stance is kept in `torch._dynamo.eval_frame._stance` (torch 2.6 and later), the switch in `torch._dynamo.config.disable`,
which `TORCH_COMPILE_DISABLE=1` sets when torch is imported.
"""

from __future__ import annotations

import os
import sys
from typing import Any

SWITCH = "TORCH_COMPILE_DISABLE"


def stance() -> str:
    """The stance in force; `default` where torch has none, or was never asked."""
    held: Any = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)
    return str(getattr(held, "stance", "default"))


def switched_off_by() -> str | None:
    """What keeps torch.compile from compiling anything, in words; `None` when nothing does."""
    if getattr(sys.modules.get("torch._dynamo.config"), "disable", False) is True:
        return SWITCH if os.environ.get(SWITCH) == "1" else "torch._dynamo.config.disable"
    return "the stance force_eager" if stance() == "force_eager" else None
