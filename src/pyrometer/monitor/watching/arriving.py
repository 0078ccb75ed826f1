"""Small tensors on their way to the host: what lies on a device is copied behind its work, and nobody waits."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

MOST_PENDING = 64
T = TypeVar("T")


class Arriving(Generic[T]):
    """Figures that were asked for, each with a word of what they are; beyond the most that may be under way the oldest are lost."""

    def __init__(self, most: int = MOST_PENDING) -> None:
        self._there: deque[tuple[list[float], T]] = deque(maxlen=most * 16)
        self._pending: deque[tuple[Any, Any, T]] = deque(maxlen=most)

    def put(self, figures: Any, what: T, torch: Any) -> None:
        """Ask for the values of a tensor; on CUDA this starts a copy. What lies on other devices is left out."""
        if figures.device.type == "cpu":
            self.put_there(figures.tolist(), what)
        elif figures.device.type == "cuda":
            host = torch.empty(figures.shape, dtype=figures.dtype, pin_memory=True)
            host.copy_(figures, non_blocking=True)
            done = torch.cuda.Event()
            done.record()
            self._pending.append((host, done, what))

    def put_there(self, figures: list[float], what: T) -> None:
        """Values that need no way."""
        self._there.append((figures, what))

    def settle(self) -> None:
        """Read what devices have finished; called by one thread."""
        while self._pending and self._pending[0][1].query():
            host, _, what = self._pending.popleft()
            self._there.append((host.tolist(), what))

    def take(self) -> list[tuple[list[float], T]]:
        """What has arrived since the last time, in order; called by the same thread."""
        self.settle()
        return [self._there.popleft() for _ in range(len(self._there))]


def is_capturing(torch: Any) -> bool:
    """Whether a graph is being captured, which would keep what is asked for."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
