"""An empty cache of Inductor's for a while, so that compile times are those of a machine that has not seen the program.

`torch._inductor.utils.fresh_cache` sets TORCHINDUCTOR_CACHE_DIR and drops what
Inductor keeps in memory of the other folder; setting the variable alone would leave paths into it behind.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

NAMES = ("fresh_cache", "fresh_inductor_cache")


def fresh_cache() -> contextlib.AbstractContextManager[Any]:
    """Compile into an empty folder, which is gone at the end; changes nothing where this torch cannot."""
    found = _found()
    return contextlib.nullcontext() if found is None else found()


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    return [] if _found() else ["cold compile times: this torch cannot be given an empty cache while it runs"]


def _found() -> Callable[[], contextlib.AbstractContextManager[Any]] | None:
    try:
        utils: Any = importlib.import_module("torch._inductor.utils")
    except ImportError:
        return None
    return next((getattr(utils, name) for name in NAMES if hasattr(utils, name)), None)
