"""The allocator's own account of a script's steps, for compiled code: under a dispatch mode it would run eagerly.

What an address is for is told by what is found there between the phases: parameters and gradients of the modules that were
called, and the state of optimizers. Saved-tensor hooks would have the compiler compile anew, so activations are told by their
lives.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from pyrometer.memory.category import Category
from pyrometer.memory.private.allocation_events import AllocatorAccount
from pyrometer.memory.private.dispatch import storages
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.recording.allocator import Sighting, log_of
from pyrometer.memory.scripts.settling import kept_for_backward
from pyrometer.workload.script.startup._pyrometer_inside.tracer import ProfilerGuard
from pyrometer.workload.state import optimizer_tensors


class Accounting:
    """Follows what modules and optimizers a script has, and accounts for some of its steps.

    Attributes:
        running: the account has begun.
        gave_way: the script started a profiler of its own, so that this one ended.
    """

    def __init__(self) -> None:
        self.running = False
        self.gave_way = False
        self._models: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._account: AllocatorAccount | None = None
        self._guard: ProfilerGuard | None = None
        self._device = torch.device("cpu")
        self._seen: list[Sighting] = []
        self._phases: list[tuple[int, str, int]] = []
        self._log: AllocationLog | None = None

    def know(self, subject: Any) -> None:
        """A module is called, or an optimizer has stepped."""
        if isinstance(subject, nn.Module):
            self._models.add(subject)
        elif isinstance(subject, torch.optim.Optimizer):
            self._optimizers.add(subject)

    def start(self, device: torch.device) -> None:
        """Account from here on.

        Raises:
            InputError: the script's own profiler is at work.
        """
        self._device = device
        self._account = AllocatorAccount()
        self._account.start()
        self._guard = ProfilerGuard(torch, self._give_way)
        self.running = True
        self._look()

    def end_phase(self, name: str, step: int) -> None:
        """What was allocated since the last phase ended belongs to this one."""
        if self.running:
            self._phases.append((time.time_ns(), name, step))
            self._look()

    def stop(self) -> AllocationLog:
        """Account no longer; what was accounted."""
        if self._log is None:
            assert self._account is not None
            assert self._guard is not None
            self.running = False
            self._guard.remove()
            events = [one for one in self._account.stop() if one.device == self._device.type]
            self._log = log_of(events, self._seen, self._phases)
            kept_for_backward(self._log)
        return self._log

    def _give_way(self) -> None:
        self.gave_way = True
        self.stop()

    def _look(self) -> None:
        """See what is where."""
        for model in list(self._models):
            self._see_trained(list(model.parameters()), "parameters")
            self._see(model.buffers(), "parameters")
        for optimizer in list(self._optimizers):
            self._see(optimizer_tensors(optimizer), "optimizer")
            self._see_trained([one for group in optimizer.param_groups for one in group["params"]], "master")

    def _see_trained(self, tensors: list[torch.Tensor], category: Category) -> None:
        self._see(tensors, category)
        self._see([one.grad for one in tensors if one.grad is not None], "gradients")

    def _see(self, tensors: Iterable[torch.Tensor], category: Category) -> None:
        now = time.time_ns()
        for tensor in tensors:
            if tensor.device.type == self._device.type:
                for storage, dtype in storages(tensor):
                    name = str(dtype).removeprefix("torch.")
                    self._seen.append(Sighting(now, storage.data_ptr(), storage.nbytes(), name, category))
