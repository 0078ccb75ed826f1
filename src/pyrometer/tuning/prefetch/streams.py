"""What copying ahead needs of a device, and that on the devices that have it."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

DEVICES_WITH_STREAMS = frozenset({"cuda", "xpu"})


class Streams:
    """A stream for copies on a CUDA, ROCm or XPU device, and what orders it with the consumer's stream.

    Everything but `finish` and `pin` returns at once; the device does it later, in the order of each stream.

    Attributes:
        device: where batches go.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._module: Any = getattr(torch, device.type)
        self._stream = self._module.Stream(device=device)

    def is_here(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies on the device already."""
        return tensor.device == self.device

    def copying(self) -> contextlib.AbstractContextManager[Any]:
        """Make the stream for copies this thread's current one; memory is then allocated for that stream."""
        return self._module.stream(self._stream)  # type: ignore[no-any-return]

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy a tensor; from pageable memory the host waits until the driver has taken it over."""
        return tensor.to(self.device, non_blocking=True)

    def record(self) -> Any:
        """An event that happens when everything that was put on the stream for copies so far is done."""
        return self._stream.record_event()

    def wait(self, event: Any) -> None:
        """Let this thread's current stream do nothing more until the event has happened; the host does not wait."""
        self._module.current_stream(self.device).wait_event(event)

    def hold(self, tensor: torch.Tensor) -> None:
        """Keep the tensor's memory from being used again until this thread's current stream is done with it."""
        tensor.record_stream(self._module.current_stream(self.device))

    def is_done(self, event: Any) -> bool:
        """Whether the event has happened."""
        return bool(event.query())

    def finish(self, event: Any) -> None:
        """Let the host wait until the event has happened."""
        event.synchronize()

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy to page-locked memory, unless the tensor lies there or on a device."""
        return tensor.pin_memory() if tensor.device.type == "cpu" else tensor
