"""What Inductor finds out about the machine before its first kernel for the CPU: which vector instructions compile and run.

It compiles a handful of small programs for that and keeps them among its compiled kernels. They are the same for every program,
and take several times as long as a small kernel does.
"""

from __future__ import annotations

import importlib
from typing import Any


def keep_probes() -> None:
    """Leave the results in the folder that TORCHINDUCTOR_CACHE_DIR names; nothing where this torch cannot."""
    found = getattr(_module(), "valid_vec_isa_list", None)
    if found is not None:
        found()


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    if hasattr(_module(), "valid_vec_isa_list"):
        return []
    return ["vector instructions: this torch cannot be asked for them before it compiles"]


def _module() -> Any:
    try:
        return importlib.import_module("torch._inductor.cpu_vec_isa")
    except ImportError:
        return None
