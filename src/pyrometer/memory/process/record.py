"""The memory of a process, its workers and its devices at one moment."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class Footprint(Record, frozen=True, kw_only=True):
    """Pages of one process. What the platform does not tell is null."""

    pid: int
    rss_bytes: Annotated[Bytes, doc("resident, with what is shared counted in full")]
    pss_bytes: Annotated[
        Bytes | None, doc("resident, with what is shared divided among those who share it")
    ] = None
    private_dirty_bytes: Annotated[Bytes | None, doc("written by this process and mapped by no other")] = None
    shared_bytes: Annotated[Bytes | None, doc("mapped by other processes too, clean or dirty")] = None
    swap_bytes: Annotated[Bytes | None, doc("swapped out")] = None


class HeapState(Record, frozen=True, kw_only=True):
    """Memory of the C library's allocator."""

    used_bytes: Annotated[Bytes, doc("handed out and not freed")]
    free_bytes: Annotated[Bytes, doc("freed by the program and kept for later, in all arenas")]


class DeviceMemory(Record, frozen=True, kw_only=True):
    """A device as torch and its driver see it."""

    device: Annotated[str, doc("such as cuda:0")]
    allocated_bytes: Annotated[Bytes, doc("in live tensors of this process")]
    reserved_bytes: Annotated[Bytes, doc("held by torch's caching allocator")]
    used_bytes: Annotated[Bytes, doc("of all processes, by the driver")]
    total_bytes: Bytes

    @property
    def outside_bytes(self) -> Bytes:
        """Used, but not held by torch's allocator: contexts, libraries, other processes."""
        return self.used_bytes - self.reserved_bytes


class ProcessMemory(Record, frozen=True, kw_only=True):
    """All that can be read about the memory of this process without running anything."""

    own: Footprint
    workers: Annotated[list[Footprint], doc("processes that it started, and those that they started")] = []
    peak_bytes: Annotated[Bytes | None, doc("highest resident size since `reset_peak` or the start")] = None
    heap: Annotated[HeapState | None, doc("null where the C library does not tell")] = None
    python_blocks: Annotated[int, doc("memory blocks that live Python objects take")] = 0
    pinned_bytes: Annotated[Bytes | None, doc("page-locked by torch; null where torch does not tell")] = None
    devices: Annotated[list[DeviceMemory], doc("those on which torch's allocator holds memory")] = []
    shm_used_bytes: Annotated[Bytes | None, doc("of /dev/shm, by all processes")] = None
    shm_total_bytes: Bytes | None = None
