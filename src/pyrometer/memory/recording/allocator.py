"""The same log of allocations, from the allocator's own account instead of from operators.

It also holds where operators cannot be watched one by one, in compiled code, and sees memory that operators take for
themselves. Addresses tell what an allocation is for, at the time when a gradient, a saved tensor or the optimizer's
state is found there. Lines and modules are not known.
"""

from __future__ import annotations

import bisect
import contextlib
import gc
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils import _pytree as pytree

from pyrometer.memory.category import Category
from pyrometer.memory.private.allocation_events import AllocatorEvent, allocator_events
from pyrometer.memory.private.dispatch import storages
from pyrometer.memory.recording.allocation import Allocation, AllocationLog, Origin
from pyrometer.memory.recording.unfollowed import refusal_of_hooks, with_or_without_hooks
from pyrometer.quantity import Bytes
from pyrometer.workload.failure import user_code
from pyrometer.workload.state import optimizer_tensors
from pyrometer.workload.training import TrainingSession
from pyrometer.workload.workload import Session, Workload

_NOWHERE = Origin("", None, None)


def record_allocator(work: Workload, *, steps: int, warm: int = 0) -> AllocationLog:
    """Run a workload's steps under the profiler and bring what the allocator did to a log.

    Args:
        work: what to run.
        steps: steps to record.
        warm: steps before, so that compiling and what libraries set up once is not counted.

    Raises:
        InputError: the workload cannot be prepared.
        UserProgramError: a step raised.
    """
    with work.open() as session:
        session.activate()
        gc.collect()
        with user_code("the step"):
            for _ in range(warm):
                session.phased_step(lambda _phase: None)
        return with_or_without_hooks(lambda saved: _account(session, steps, saved=saved))


def _account(session: Session, steps: int, *, saved: bool) -> AllocationLog:
    sightings = _Sightings(session.device)

    def run() -> None:
        with refusal_of_hooks(), user_code("the step"), sightings.followed(session, saved=saved):
            for step in range(steps):
                output = session.phased_step(lambda phase, step=step: sightings.end(phase, step))  # type: ignore[misc]
                sightings.end("rest", step)
                del output

    sightings.present(session)
    events = [event for event in allocator_events(run) if event.device == sightings.device]
    return log_of(events, sightings.seen, sightings.phases)


class Sighting(NamedTuple):
    """What was found at an address, and when."""

    time_ns: int
    address: int
    nbytes: Bytes
    dtype: str
    category: Category | None  # None where autograd saved it


class _Sightings:
    """Notes what is found at which address while steps run."""

    def __init__(self, device: torch.device) -> None:
        self.device = device.type
        self.seen: list[Sighting] = []
        self.phases: list[tuple[int, str, int]] = []

    def end(self, phase: str, step: int) -> None:
        """A phase ended."""
        self.phases.append((time.time_ns(), phase, step))

    def present(self, session: Session) -> None:
        """What is there before the first recorded step."""
        model, parts = getattr(session, "model", None), getattr(session, "parts", None)
        modules = [model] if isinstance(model, nn.Module) else []
        modules += parts.modules if parts is not None else []
        for module in modules:
            self._see([*module.parameters(), *module.buffers()], "parameters")
            self._see([p.grad for p in module.parameters() if p.grad is not None], "gradients")
        if parts is not None:
            self._see(optimizer_tensors(parts.optimizer), "optimizer")
            self._see(parts.trained(), "master")

    @contextlib.contextmanager
    def followed(self, session: Session, *, saved: bool) -> Iterator[None]:
        """Follow gradients, inputs and optimizers of a session, and what autograd saves."""
        with contextlib.ExitStack() as stack:
            session.inputs_seen = self._inputs
            stack.callback(setattr, session, "inputs_seen", None)
            if saved:
                stack.enter_context(
                    torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)
                )
            stack.callback(register_optimizer_step_post_hook(self._stepped).remove)
            if isinstance(session, TrainingSession):
                for tensor in session.parts.with_gradients():
                    if tensor.requires_grad and tensor.is_leaf:
                        stack.callback(tensor.register_post_accumulate_grad_hook(self._accumulated).remove)  # type: ignore[no-untyped-call]
            yield

    def _see(self, tensors: Iterable[torch.Tensor], category: Category | None) -> None:
        now = time.time_ns()
        for tensor in tensors:
            if tensor.device.type == self.device:
                for storage, dtype in storages(tensor):
                    name = str(dtype).removeprefix("torch.")
                    self.seen.append(Sighting(now, storage.data_ptr(), storage.nbytes(), name, category))

    def _inputs(self, inputs: Any) -> None:
        self._see((leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)), "inputs")

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        self._see([tensor], None)
        return tensor.detach()

    def _accumulated(self, tensor: torch.Tensor) -> None:
        if tensor.grad is not None:
            self._see([tensor.grad], "gradients")

    def _stepped(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self._see(optimizer_tensors(optimizer), "optimizer")


def log_of(
    events: Sequence[AllocatorEvent], seen: Sequence[Sighting], phases: Sequence[tuple[int, str, int]]
) -> AllocationLog:
    """Bring allocator events and sightings, in time order each, to a log.

    What is seen at an address where nothing was allocated meanwhile was there before. Frees of what was there before,
    and unknown, cannot be told from frees of other programs' memory and are left out.
    """
    lives = _lives(events)
    before = _before(seen, lives)
    log = AllocationLog()
    for sighting in before.values():
        log.born(
            Allocation(
                sighting.nbytes, 0, _NOWHERE, sighting.dtype, category=sighting.category, preexisting=True
            )
        )
    indices: dict[int, int] = {sighting.address: index for index, sighting in enumerate(before.values())}
    ends = list(phases)
    for event in events:
        while ends and ends[0][0] <= event.time_ns:
            log.end_phase(*ends.pop(0)[1:])
        if event.nbytes > 0:
            origin = Origin(event.operator, None, None)
            indices[event.address] = log.born(Allocation(event.nbytes, 0, origin, ""))
        elif event.address in indices:
            log.died(indices.pop(event.address))
    for _, name, step in ends:
        log.end_phase(name, step)
    _recognise(log, seen, lives, len(before))
    return log


class _Life(NamedTuple):
    """When an address was in use, by which allocation."""

    begin_ns: int
    end_ns: float
    number: int


def _lives(events: Sequence[AllocatorEvent]) -> dict[int, list[_Life]]:
    """By address: every allocation there, in order."""
    lives: dict[int, list[_Life]] = defaultdict(list)
    number = 0
    for event in events:
        here = lives[event.address]
        if event.nbytes > 0:
            here.append(_Life(event.time_ns, float("inf"), number))
            number += 1
        elif here and here[-1].end_ns == float("inf"):
            here[-1] = here[-1]._replace(end_ns=event.time_ns)
    return lives


def _alive(lives: dict[int, list[_Life]], sighting: Sighting) -> _Life | None:
    here = lives.get(sighting.address, [])
    at = bisect.bisect_right(here, sighting.time_ns, key=lambda life: life.begin_ns) - 1
    return here[at] if at >= 0 and sighting.time_ns < here[at].end_ns else None


def _before(seen: Sequence[Sighting], lives: dict[int, list[_Life]]) -> dict[int, Sighting]:
    """By address: what was seen and is not of the recording; the first category stays."""
    sightings: dict[int, Sighting] = {}
    for sighting in seen:
        if sighting.category is not None and sighting.nbytes and _alive(lives, sighting) is None:
            sightings.setdefault(sighting.address, sighting)
    return sightings


def _recognise(
    log: AllocationLog, seen: Sequence[Sighting], lives: dict[int, list[_Life]], first: int
) -> None:
    for sighting in seen:
        life = _alive(lives, sighting)
        if life is None:
            continue
        allocation = log.allocations[first + life.number]
        allocation.dtype = allocation.dtype or sighting.dtype
        if sighting.category is None:
            allocation.saved = True
        elif allocation.category is None:
            allocation.category = sighting.category
