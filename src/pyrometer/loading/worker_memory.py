"""Memory of worker processes, and the shared memory that their batches pass through."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import psutil

from pyrometer.quantity import Bytes

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps it; nothing is written here


def own_bytes(pids: Iterable[int]) -> Bytes | None:
    """Bytes that belong to these processes alone, and would be free without them.

    Not the resident size: forked workers share the pages of their parent until one of them writes to a page, and the sum of
    resident sizes counts such pages once per process. `None` where no process could be read.
    """
    sizes = [size for pid in pids if (size := _own_bytes(pid)) is not None]
    return sum(sizes) if sizes else None


def _own_bytes(pid: int) -> Bytes | None:
    try:
        return int(psutil.Process(pid).memory_full_info().uss)
    except (psutil.Error, AttributeError):
        return None  # it has ended, belongs to someone else, or this system does not tell


def free_shared_bytes(folder: Path = SHARED_MEMORY) -> Bytes | None:
    """Free shared memory; `None` on systems without such a folder."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def shared_bytes(capacity: int, bytes_per_batch: Bytes) -> Bytes:
    """Shared memory that a loader with workers needs: every batch that is ready, and the one in use.

    >>> shared_bytes(4, 1000), shared_bytes(0, 1000)
    (5000, 0)
    """
    return (capacity + 1) * bytes_per_batch if capacity else 0
