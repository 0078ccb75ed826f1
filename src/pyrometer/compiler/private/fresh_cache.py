"""An empty cache of Inductor's for a while, so that compile times are those of a machine that has not seen the program.

`torch._inductor.utils.fresh_cache` sets TORCHINDUCTOR_CACHE_DIR and drops what Inductor keeps in memory of the other folder;
setting the variable alone would leave paths into it behind.
"""

from __future__ import annotations

import contextlib
from typing import Any


def fresh_cache() -> contextlib.AbstractContextManager[Any]:
    """Compile into an empty folder, which is gone at the end."""
    from torch._inductor import utils

    cache: contextlib.AbstractContextManager[Any] = utils.fresh_cache()
    return cache
