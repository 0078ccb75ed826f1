"""The C library's allocator: what it holds, and giving back what it need not hold.

Source: `mallinfo2(3)` and `malloc_trim(3)` of the GNU C library; other libraries have neither.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from pyrometer.memory.process.record import HeapState

_FIELDS = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def heap_state() -> HeapState | None:
    """What the allocator has handed out and what it keeps; `None` without a GNU C library of version 2.33 or later."""
    mallinfo2 = _function("mallinfo2")
    if mallinfo2 is None:
        return None
    mallinfo2.restype = _MallInfo
    info = mallinfo2()
    return HeapState(used_bytes=info.uordblks + info.hblkhd, free_bytes=info.fordblks)


def trim_heap() -> bool:
    """Give free memory back to the system, as far as whole pages are free.

    Nothing that lives is touched, but the pages must be asked for again when they are needed: on a large heap this takes
    tens of milliseconds.

    Returns:
        Whether the allocator can do it at all.
    """
    malloc_trim = _function("malloc_trim")
    if malloc_trim is None:
        return False
    malloc_trim(ctypes.c_size_t(0))
    return True


def _function(name: str) -> Any:
    if sys.platform != "linux":
        return None
    # A handle of our own, so that setting a result type changes nobody else's function.
    return getattr(ctypes.CDLL(None), name, None)
