"""Memory of this process, sampled seldom enough to cost next to nothing."""

from __future__ import annotations

import os
from time import perf_counter_ns

from . import kinds
from .log import EventLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SHORTEST_INTERVAL_NS = 20_000_000
COST_LIMIT = 1000  # at most 1/1000 of the time goes into sampling


class MemorySampler:
    """Logs resident and allocator bytes, at most every 20 ms, more seldom where reading them is slow.

    Attributes:
        next_ns: when a sample is due.
    """

    __slots__ = ("_cuda", "_log", "_page_bytes", "next_ns")

    def __init__(self, log: EventLog, torch: Any) -> None:
        self._log = log
        self._cuda = getattr(torch, "cuda", None)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self.next_ns: float = 0

    def sample(self, time_ns: int) -> None:
        """Sample what is due; counts as memory at `time_ns`, when a phase has just ended."""
        try:
            self._sample(time_ns)
        except Exception:  # noqa: BLE001 - the script comes first; the log says that the series ends here
            self._log.add(kinds.SAMPLER_FAILED)
            self.next_ns = float("inf")
            return
        spent_ns = perf_counter_ns() - time_ns
        self.next_ns = time_ns + max(SHORTEST_INTERVAL_NS, COST_LIMIT * spent_ns)

    def _sample(self, time_ns: int) -> None:
        values = {kinds.RESIDENT_BYTES: read_resident_pages() * self._page_bytes}
        if self._cuda is not None and self._cuda.is_initialized():
            stats = self._cuda.memory_stats()
            values[kinds.ALLOCATED_BYTES] = stats.get("allocated_bytes.all.current", 0)
            values[kinds.ALLOCATED_PEAK_BYTES] = stats.get("allocated_bytes.all.peak", 0)
        for kind, value in values.items():
            self._log.add_at(time_ns, kinds.word(kind, value))


def read_resident_pages() -> int:
    """Resident pages of this process (Linux).

    Opened each time: a descriptor kept open would be seen by scripts that close or count theirs.
    """
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(descriptor, 128).split()[1])
    finally:
        os.close(descriptor)


def resident_peak_bytes() -> int | None:
    """Highest resident size in the life of this process; `None` where the system does not say (not Linux)."""
    try:
        with open("/proc/self/status", "rb") as status:  # noqa: PTH123 - pathlib is not loaded here
            line = next(line for line in status if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):
        return None
    return int(line.split()[1]) * 1024
