"""Checkpointing by pressure: blocks are switched on while memory is short, and off again when there is plenty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import psutil
import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.quantity import Bytes, Ratio
from pyrometer.tuning.checkpointing.record import CheckpointPlan
from pyrometer.workload.changes.checkpointing import Applied, LaidOver, checkpointed, module_at
from pyrometer.workload.inference import home_of

TIGHT = 0.1
ROOMY = 0.25
PATIENCE = 10


class FreeMemory(NamedTuple):
    """What is free of how much."""

    free_bytes: Bytes
    total_bytes: Bytes

    @property
    def share(self) -> Ratio:
        """Free over total."""
        return self.free_bytes / self.total_bytes if self.total_bytes else 0.0


MemoryReader: TypeAlias = Callable[[], FreeMemory]


def free_memory(device: torch.device) -> FreeMemory:
    """Memory that a program may still take on a device: on CUDA with what torch's allocator holds in reserve.

    >>> 0 < free_memory(torch.device("cpu")).share < 1
    True
    """
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return FreeMemory(free + reserve, total)
    memory = psutil.virtual_memory()
    return FreeMemory(int(memory.available), int(memory.total))


class AdaptiveCheckpoint:
    """Switches checkpointing of a model's blocks on and off between steps, by the memory that is free.

    Memory is read at the end of each forward pass with gradients, where activations are at their highest, and the least
    reading of a step counts. Below `tight` further blocks are switched on; above `roomy`, for `patience` steps in a row, one is
    switched off, unless the bytes that it would take are known and would lead back below `tight`. Between the two nothing
    changes, so that blocks do not flicker.

    Use it as a context manager around the loop, and call `step()` after each optimizer step. When it ends, the model is as
    before.

    Args:
        model: whose blocks are switched.
        plan: of `plan_checkpoints`: gives the order (the most bytes per second first), bytes, and what the blocks write to;
            or module paths in the order in which to switch them on.
        tight: share of free memory below which blocks are switched on.
        roomy: share above which they are switched off.
        patience: steps with plenty of memory before one is switched off.
        reader: reads the free memory; by default that of the model's device.

    Raises:
        InputError: no blocks, no such module, or shares that are not 0 < tight < roomy < 1.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    >>> with AdaptiveCheckpoint(model, ["0", "1"], reader=lambda: FreeMemory(5, 100)) as adaptive:
    ...     adaptive.step()
    ...     adaptive.active
    ['0']
    """

    def __init__(
        self,
        model: nn.Module,
        plan: CheckpointPlan | Sequence[str],
        *,
        tight: Ratio = TIGHT,
        roomy: Ratio = ROOMY,
        patience: int = PATIENCE,
        reader: MemoryReader | None = None,
    ) -> None:
        if not 0 < tight < roomy < 1:
            raise InputError(f"tight, roomy: got {tight} and {roomy}; they must be 0 < tight < roomy < 1")
        require_count("patience", patience)
        self._model = model
        self._order = list(plan.order if isinstance(plan, CheckpointPlan) else plan)
        if not self._order:
            raise InputError(
                "plan: it names no blocks to switch; give module paths in the order to switch them on"
            )
        for path in self._order:
            module_at(model, path)
        costs = plan.costs if isinstance(plan, CheckpointPlan) else []
        self._saved = {cost.module: cost.saved_bytes for cost in costs if cost.policy == "full"}
        self._written = plan.written if isinstance(plan, CheckpointPlan) else {}
        self._tight, self._roomy, self._patience = tight, roomy, patience
        self._reader = reader or (lambda: free_memory(home_of(model)))
        self._applied: list[tuple[str, Applied]] = []
        self._lowest: FreeMemory | None = None
        self._calm = 0
        self._reading = Applied([(model, _ReadAfter(model.forward, self._read))])

    @property
    def active(self) -> list[str]:
        """Blocks that are checkpointed now, in the order in which they were switched on."""
        return [path for path, _ in self._applied]

    def step(self) -> None:
        """Decide after a step; what is switched holds from the next forward pass on."""
        memory = self._lowest or self._reader()
        self._lowest = None
        if memory.share < self._tight:
            self._calm = 0
            self._switch_on(memory)
        elif memory.share > self._roomy:
            self._calm += 1
            if self._calm >= self._patience and self._applied:
                self._calm = 0
                self._switch_off(memory)
        else:
            self._calm = 0

    def close(self) -> None:
        """Switch everything off; the model is as before."""
        while self._applied:
            self._applied.pop()[1].remove()
        self._reading.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _switch_on(self, memory: FreeMemory) -> None:
        """One block, or as many as it takes where their bytes are known."""
        lacking = self._tight * memory.total_bytes - memory.free_bytes
        for path in self._order[len(self._applied) :]:
            applied = checkpointed(self._model, {path: "full"}, {path: self._written.get(path, ())})
            self._applied.append((path, applied))
            lacking -= self._saved.get(path, lacking)
            if lacking <= 0:
                return

    def _switch_off(self, memory: FreeMemory) -> None:
        path, applied = self._applied[-1]
        left = memory.free_bytes - self._saved.get(path, 0)
        if left > self._tight * memory.total_bytes:
            applied.remove()
            self._applied.pop()

    def _read(self) -> None:
        if not torch.is_grad_enabled():
            return
        memory = self._reader()
        if self._lowest is None or memory.free_bytes < self._lowest.free_bytes:
            self._lowest = memory


class _ReadAfter(LaidOver):
    """A model's forward, and a reading at its end."""

    def __init__(self, forward: Callable[..., Any], read: Callable[[], None]) -> None:
        super().__init__(forward)
        self.read = read

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = self.inner(*args, **kwargs)
        self.read()
        return output
