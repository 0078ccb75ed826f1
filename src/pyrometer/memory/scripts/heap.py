"""How much memory this process uses, read in a few microseconds; the one place that knows malloc's own figures.

| what | how | where it is missing |
|---|---|---|
| bytes that malloc has handed out, tensors of the CPU among them | `mallinfo2` of glibc from 2.33 on | resident memory |
| the process's highest resident memory | `VmHWM` in `/proc/self/status` | no peaks between two readings |
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import NamedTuple

import torch

from pyrometer.quantity import Bytes
from pyrometer.workload.script.startup._pyrometer_inside.memory import (
    read_resident_pages,
    resident_peak_bytes,
)

PROBE_BYTES = 2**20


class Meter(NamedTuple):
    """A reading of memory, and what it is of."""

    read: Callable[[], Bytes]
    source: str


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
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
    )


def best_meter() -> Meter:
    """Malloc's own account where tensors are seen in it, which another allocator may keep from it, else resident memory."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):  # another libc, or an older one
        return Meter(resident_bytes, "resident memory of the process")
    mallinfo.restype = _Mallinfo

    def live() -> Bytes:
        figures = mallinfo()
        return int(figures.uordblks + figures.hblkhd)

    before = live()
    probe = torch.empty(PROBE_BYTES, dtype=torch.uint8)
    seen = live() - before
    del probe
    if seen < PROBE_BYTES:
        return Meter(resident_bytes, "resident memory of the process")
    return Meter(live, "bytes that malloc has handed out")


def resident_bytes() -> Bytes:
    """Resident memory of this process."""
    return read_resident_pages() * os.sysconf("SC_PAGE_SIZE")


def released_bytes() -> tuple[Bytes, Bytes] | None:
    """The process's highest resident memory, and how much less is resident now; `None` where nobody says."""
    highest = resident_peak_bytes()
    return None if highest is None else (highest, max(0, highest - resident_bytes()))
