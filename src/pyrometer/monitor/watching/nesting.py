"""Whether a watched call runs within another one: then it is a part of that request, and no request of its own.

Only calls that are looked at ask, so that the others pay nothing. Stand-ins of functions are found among the frames of the stack, awaited
coroutines too; blocks leave a mark in the context.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar

INSIDE: ContextVar[bool] = ContextVar("pyrometer_inside", default=False)
"""Whether a watched block is open in this thread or task."""
MOST_FRAMES = 200


def is_nested(num_own: int) -> bool:
    """Whether more stand-ins than the asking call's own are on the stack, or a watched block is open."""
    if INSIDE.get():
        return True
    frame = sys._getframe(1)  # noqa: SLF001 - documented, in spite of its name
    for _ in range(MOST_FRAMES):
        code = frame.f_code
        num_own -= code.co_name == "call" and code.co_filename == _STAND_INS
        if num_own < 0:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


_STAND_INS = __file__.replace("nesting.py", "wrapping.py")
