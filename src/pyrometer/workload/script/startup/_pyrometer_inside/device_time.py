"""Device time between step boundaries, by CUDA events that are read long after they have happened.

Nothing here waits for the device. Without CUDA, or before the script has initialised it, nothing is done.
"""

from __future__ import annotations

from collections import deque

from . import kinds
from .log import EventLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_PENDING = 1024
# Where steps begin and end, by what they are made of. The better one wins: once an optimizer has stepped, module
# calls and fetches are no boundaries any more.
_RANKS = {kinds.FORWARD_BEGIN: 1, kinds.FORWARD_END: 1, kinds.DATA_BEGIN: 2, kinds.OPTIMIZER_END: 3}


class DeviceTime:
    """Records an event at each boundary and logs the distance of two once both have happened."""

    __slots__ = ("_cuda", "_log", "_pending", "_rank")

    def __init__(self, log: EventLog, cuda: Any) -> None:
        self._cuda = cuda
        self._log = log
        self._rank = 0
        self._pending: deque[tuple[int, Any]] = deque()

    def boundary(self, kind: int, time_ns: int) -> None:
        """Something of this kind has just happened on the host."""
        rank = _RANKS.get(kind, 0)
        if rank == 0 or rank < self._rank or self._cuda is None or not self._cuda.is_initialized():
            return
        if rank > self._rank:
            self._rank = rank
            self._pending.clear()
        try:
            self._record(time_ns)
        except Exception:  # noqa: BLE001 - the script comes first; without further events device time is unknown
            self._cuda = None

    def resolve(self) -> None:
        """Log the distances of those events that have happened."""
        while len(self._pending) > 1 and self._pending[1][1].query():
            _, start = self._pending.popleft()
            time_ns, end = self._pending[0]
            device_ns = round(start.elapsed_time(end) * 1e6)
            self._log.add_at(time_ns, kinds.word(kinds.DEVICE_NS, max(0, device_ns)))

    def _record(self, time_ns: int) -> None:
        if self._cuda.is_current_stream_capturing():
            return
        event = self._cuda.Event(enable_timing=True)
        event.record()
        self._pending.append((time_ns, event))
        if len(self._pending) > MAX_PENDING:
            self._pending.popleft()
        self.resolve()


def device_time(log: EventLog, torch: Any) -> DeviceTime | None:
    """The clock of the device, or `None` for a torch without CUDA or with one that is not as expected."""
    cuda = getattr(torch, "cuda", None)
    needed = ("Event", "is_initialized", "is_current_stream_capturing")
    built = torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None
    return DeviceTime(log, cuda) if built and all(hasattr(cuda, name) for name in needed) else None
