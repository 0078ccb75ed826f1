"""History and snapshots of the device allocators: `torch.cuda.memory` and `torch.xpu.memory`, underscored in both.

Private: `_record_memory_history`, `_snapshot`; and `torch._C._cuda_attach_out_of_memory_observer`, which has no counterpart that
detaches, so that one observer is attached for the life of the process and does nothing while nobody listens.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OutOfMemoryListener = Callable[[int, int, int, int], None]
"""Called with device, bytes asked for, bytes of the device, bytes that it has left."""

_listeners: list[OutOfMemoryListener] = []
_attached = threading.Event()
_lock = threading.Lock()


@dataclass(frozen=True)
class HistoryModule:
    """One kind of device that can record."""

    kind: str
    module: Any

    def start(self, max_entries: int, *, stacks: str, context: str) -> None:
        """Begin a history of at most so many events, without what was recorded before where torch can drop it."""
        arguments = {"max_entries": max_entries, "stacks": stacks, "context": context, "clear_history": True}
        accepted = inspect.signature(self.module._record_memory_history).parameters  # noqa: SLF001
        self.module._record_memory_history("all", **{k: v for k, v in arguments.items() if k in accepted})  # noqa: SLF001

    def stop(self) -> None:
        """Record no longer."""
        self.module._record_memory_history(None)  # noqa: SLF001

    def snapshot(self) -> Any:
        """What the allocator holds and did."""
        return self.module._snapshot()  # noqa: SLF001


def recording_module(torch: Any) -> HistoryModule | None:
    """What can record on this machine: CUDA (ROCm too) first, then XPU; `None` where nothing can."""
    for kind in ("cuda", "xpu"):
        device = getattr(torch, kind, None)
        memory = getattr(device, "memory", None)
        has_all = all(hasattr(memory, name) for name in ("_record_memory_history", "_snapshot"))
        if device is not None and device.is_available() and has_all:
            return HistoryModule(kind, memory)
    return None


def is_recording(torch: Any, kind: str) -> bool | None:
    """Whether a history is being recorded already; `None` where this torch does not tell."""
    ask = getattr(torch._C, f"_{kind}_isHistoryEnabled", None)  # noqa: SLF001
    return bool(ask()) if ask is not None else None


def listen_for_oom(torch: Any, kind: str, listener: OutOfMemoryListener) -> Callable[[], None]:
    """Have a listener called at each OOM; returns what ends that. Nothing is called where torch has no observer."""
    attach = getattr(torch._C, f"_{kind}_attach_out_of_memory_observer", None)  # noqa: SLF001
    if attach is None:
        return lambda: None
    with _lock:
        if not _attached.is_set():
            attach(_tell)
            _attached.set()
        _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def _tell(device: int, asked: int, total: int, left: int) -> None:
    for listener in tuple(_listeners):
        listener(device, asked, total, left)
