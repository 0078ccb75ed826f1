"""How long a device worked for a call: two events on its stream, which are read when they are done; nobody waits."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

from pyrometer.quantity import Seconds

MOST_PENDING = 64


class DeviceTimer:
    """Events around sampled calls on one CUDA device."""

    def __init__(self) -> None:
        self._pending: deque[tuple[Any, Any]] = deque(maxlen=MOST_PENDING)

    def begin(self) -> Any:
        """Record an event on the current stream; None where torch has no device, or captures a graph."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized() or torch.cuda.is_current_stream_capturing():
            return None
        return self._recorded(torch)

    def end(self, begun: Any) -> None:
        """Record the second event."""
        if begun is not None:
            self._pending.append((begun, self._recorded(sys.modules["torch"])))

    def take(self) -> list[Seconds]:
        """Times of the calls that the device has finished since the last time."""
        found = []
        while self._pending and self._pending[0][1].query():
            begun, ended = self._pending.popleft()
            found.append(begun.elapsed_time(ended) / 1e3)
        return found

    @staticmethod
    def _recorded(torch: Any) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
