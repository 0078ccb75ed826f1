"""After how many steps compiling has paid."""

from __future__ import annotations

import math

from pyrometer.quantity import Seconds


def break_even_steps(eager_s: Seconds, compiled_s: Seconds, compilation_s: Seconds) -> int | None:
    """Steps after which compilation has repaid its cost; `None` when it never does.

    >>> break_even_steps(0.010, 0.006, 40.0), break_even_steps(0.006, 0.010, 40.0)
    (10000, None)
    """
    saved = eager_s - compiled_s
    return math.ceil(round(compilation_s / saved, 6)) if saved > 0 else None
