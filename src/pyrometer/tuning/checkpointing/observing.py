"""Recording a step so that what autograd keeps, and what Python keeps, are told apart.

Saved tensors are packed as copies that are not counted. So a storage dies in the recording when nothing but autograd
would hold it, which is when it dies if its module is checkpointed; and each copy's end tells for how long autograd
would have held it. The copies take the memory that the storages themselves have given back.
"""

from __future__ import annotations

import contextlib
import gc
import random
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.memory.private.dispatch import plain_tensors, storage_key
from pyrometer.memory.recording.allocation import Allocation, AllocationLog
from pyrometer.memory.recording.recorder import AllocationRecorder
from pyrometer.memory.recording.steps import know_parts
from pyrometer.tuning.checkpointing.building import step_model
from pyrometer.tuning.checkpointing.private import version_of
from pyrometer.tuning.checkpointing.trace import Call, Slot, StepTrace, Storage
from pyrometer.workload.changes.checkpointing import Applied, plain_model
from pyrometer.workload.failure import user_code
from pyrometer.workload.training import TrainingSession
from pyrometer.workload.variant import is_compiled
from pyrometer.workload.workload import Workload


def observe_step(work: Workload) -> StepTrace:
    """Record the first two training steps, and return the one with the larger peak.

    What modules do that must not be done twice is told by the second step: in the first they make their caches.

    Raises:
        UserProgramError: a step raised.
    """
    with work.open() as session:
        assert isinstance(session, TrainingSession)
        session.activate()
        first, second = _observed(session), _observed(session)
    if first.peak_bytes > second.peak_bytes:
        first.unfit, first.written = second.unfit, second.written
        return first
    return second


def _observed(session: TrainingSession) -> StepTrace:
    gc.collect()
    recorder = StepRecorder(session.device)
    know_parts(recorder, session)
    session.inputs_seen = recorder.register_inputs
    try:
        with recorder, recorder.watching(plain_model(session.model)), user_code("the step"):
            session.phased_step(lambda phase: recorder.end_phase(phase, step=0))
    finally:
        session.inputs_seen = None
    trace = recorder.trace()
    trace.peak_bytes = step_model(trace, []).peak()
    return trace


@dataclass
class _TickingLog(AllocationLog):
    """A log that shares its clock with what else happens."""

    tick: int = 0
    born_at: list[int] = field(default_factory=list)
    died_at: dict[int, int] = field(default_factory=dict)

    def now(self) -> int:
        self.tick += 1
        return self.tick

    def born(self, allocation: Allocation) -> int:
        self.born_at.append(self.now())
        return super().born(allocation)

    def died(self, index: int) -> None:
        self.died_at[index] = self.now()
        super().died(index)


class _Packed:
    """What autograd holds instead of a tensor."""

    __slots__ = ("__weakref__", "slot", "tensor")

    def __init__(self, tensor: torch.Tensor, slot: Slot) -> None:
        self.tensor = tensor
        self.slot = slot


class StepRecorder(AllocationRecorder):
    """Records a step with what autograd saves kept apart; see the module's text."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, saved=False)
        self.log: _TickingLog = _TickingLog()
        self._slots: list[Slot] = []
        self._calls: list[Call] = []
        self._open: list[int] = []
        self._unfit: dict[str, str] = {}
        self._written: dict[str, list[str]] = {}
        self._ends: list[weakref.ref[_Packed]] = []
        self._copies: dict[tuple[int, int], weakref.ref[torch.UntypedStorage]] = {}
        self._copy_ends: list[weakref.ref[torch.UntypedStorage]] = []
        self._copying = False

    def __enter__(self) -> Self:
        super().__enter__()
        self._stack.enter_context(
            torch.autograd.graph.saved_tensors_hooks(self._pack_copy, self._unpack_copy)
        )
        return self

    def saw(self, results: Any, arguments: Any, operator: Any) -> None:
        """An operator of the program ran; our own copying is none."""
        if not self._copying:
            super().saw(results, arguments, operator)

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """What runs inside is no part of the program."""
        outer, self._copying = self._copying, True
        try:
            with torch.no_grad():
                yield
        finally:
            self._copying = outer

    @contextlib.contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Follow the calls of all modules inside of a model, and what they do that must not be done twice."""
        found = [(path, module) for path, module in model.named_modules() if path]
        inner = [
            (module, _Watched(self, path, module)) for path, module in found if self._watchable(path, module)
        ]
        with Applied(inner):
            yield

    def _watchable(self, path: str, module: nn.Module) -> bool:
        if is_compiled(module) or isinstance(module, torch.jit.ScriptModule):
            self._unfit[path] = "is compiled, so that its inside cannot be wrapped"
            return False
        return True

    def begin(self, path: str, arguments: Any) -> int:
        """A module's forward begins; returns the number of the call."""
        if any(self._calls[outer].module == path for outer in self._open):
            self._unfit[path] = "calls itself"
        call = Call(path, self.log.now(), tuple(self._open), inputs=self._storages_in(arguments))
        self._calls.append(call)
        self._open.append(len(self._calls) - 1)
        return len(self._calls) - 1

    def finish(self, number: int) -> None:
        """A module's forward ends."""
        self._calls[number].end = self.log.now()
        while self._open and self._open.pop() != number:
            pass

    def unfit(self, path: str, why: str) -> None:
        """A module must not be computed again."""
        self._unfit.setdefault(path, why)

    def writes(self, path: str, buffers: list[str]) -> None:
        """A module's forward writes to buffers of its own."""
        self._written.setdefault(path, buffers)

    def trace(self) -> StepTrace:
        """What was recorded."""
        end = self.log.now()
        storages = [
            Storage(
                allocation.nbytes,
                self.log.born_at[index],
                self.log.died_at.get(index, end + 1),
                allocation.origin.operator,
                made=not allocation.preexisting,
            )
            for index, allocation in enumerate(self.log.allocations)
        ]
        trace = StepTrace(storages, self._slots, self._calls, end, self._unfit, self._written)
        trace.notes = list(self.log.notes)
        return trace

    def _storages_in(self, arguments: Any) -> tuple[int, ...]:
        tensors = [leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
        found = [self._made_storage(tensor) for tensor in tensors]
        return tuple(dict.fromkeys(index for index in found if index is not None))

    def _made_storage(self, tensor: torch.Tensor) -> int | None:
        """The storage of a tensor that consists of just one, made in this step on the device."""
        if tensor.device.type != self.device or next(plain_tensors(tensor), None) is not tensor:
            return None
        index = self._known.get(storage_key(tensor.untyped_storage()))
        return None if index is None or self.log.allocations[index].preexisting else index

    def _pack_copy(self, tensor: torch.Tensor) -> _Packed:
        index = None if tensor.is_conj() or tensor.is_neg() else self._made_storage(tensor)
        slot = Slot(index, self.log.now(), tuple(self._open))
        self._slots.append(slot)
        packed = _Packed(tensor.detach() if index is None else self._copy(tensor, index), slot)
        self._ends.append(weakref.ref(packed, lambda _: self._released(slot)))
        return packed

    def _unpack_copy(self, packed: _Packed) -> torch.Tensor:
        if packed.slot.unpacked is None:
            packed.slot.unpacked = self.log.now()
        return packed.tensor

    def _released(self, slot: Slot) -> None:
        slot.released = self.log.now()

    def _copy(self, tensor: torch.Tensor, index: int) -> torch.Tensor:
        """The tensor on a copy of its storage; one copy serves all that is saved of one state of a storage."""
        known = index, version_of(tensor)
        reference = self._copies.get(known)
        storage = reference() if reference is not None else None
        with self.unseen():
            if storage is None:
                storage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
                self._copies[known] = weakref.ref(storage)
                self._count_as(storage, index)
            bare = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            return bare.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())

    def _count_as(self, storage: torch.UntypedStorage, index: int) -> None:
        """What operators make of a copy is no allocation, as it would be none of the storage itself."""
        key = storage_key(storage)
        self._known[key] = index
        self._copy_ends.append(weakref.ref(storage, lambda _: self._forget(key, index)))

    def _forget(self, key: int, index: int) -> None:
        if self._known.get(key) == index:  # keys are used again
            del self._known[key]


class _Watched:
    """A forward that tells the recorder of its calls."""

    def __init__(self, recorder: StepRecorder, path: str, module: nn.Module) -> None:
        self._recorder = recorder
        self._path = path
        self._module = module
        self._inner = module.forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder, path, module = self._recorder, self._path, self._module
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        inputs = [(tensor, version_of(tensor)) for tensor in tensors]
        with recorder.unseen():
            buffers = {name: buffer.clone() for name, buffer in module.named_buffers(recurse=False)}
        attributes, drawn = _attributes(module), _host_randomness()
        number = recorder.begin(path, (args, kwargs))
        try:
            return self._inner(*args, **kwargs)
        finally:
            recorder.finish(number)
            if any(version_of(tensor) != version for tensor, version in inputs):
                recorder.unfit(path, "changes its input in place, which is then gone for the recomputation")
            changed = _changed(attributes, _attributes(module))
            if changed:
                recorder.unfit(path, f"sets {', '.join(changed)} in its forward, which would happen twice")
            if not _same_randomness(drawn, _host_randomness()):
                recorder.unfit(
                    path, "draws from the random generators of Python or NumPy, which are not restored for it"
                )
            with recorder.unseen():
                written = _written(buffers, module)
            if written:
                recorder.writes(path, written)


def _written(before: dict[str, torch.Tensor], module: nn.Module) -> list[str]:
    """Buffers with other values than before: batch norm's statistics change without a new version."""
    now = dict(module.named_buffers(recurse=False))
    return [name for name, buffer in before.items() if name in now and not torch.equal(now[name], buffer)]


_TORCHS_OWN = frozenset(vars(nn.Module())) | {"forward"}


def _attributes(module: nn.Module) -> dict[str, Any]:
    """A module's own attributes; of containers also what is in them."""
    own = {name: value for name, value in vars(module).items() if name not in _TORCHS_OWN}
    return {name: (value, _contents(value)) for name, value in own.items()}


def _contents(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, id(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [id(part) for part in value]
    return len(value) if isinstance(value, (set, deque)) else None


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    names = list(dict.fromkeys([*before, *after]))
    return [
        f"self.{name}"
        for name in names
        if name not in before
        or name not in after
        or before[name][0] is not after[name][0]
        or before[name][1] != after[name][1]
    ]


def _host_randomness() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state()  # noqa: NPY002 - the global state is what programs draw from


def _same_randomness(before: tuple[Any, Any], after: tuple[Any, Any]) -> bool:
    (python, numpy), (python_after, numpy_after) = before, after
    return python == python_after and all(
        np.array_equal(a, b) for a, b in zip(numpy, numpy_after, strict=True)
    )
