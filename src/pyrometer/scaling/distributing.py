"""A training made ready for many ranks, by torch's own DDP or FSDP2, and one step of it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.scaling.record import Parallel
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.losses import batch_loss
from pyrometer.workload.program.repeated import blocks
from pyrometer.workload.training import Training
from pyrometer.workload.updating import update

Mark = Callable[[str], None]


@dataclass
class Trainee:
    """A training whose step communicates, or does not.

    Attributes:
        work: as the user gave it; its parts are this process's own.
        model: wrapped or sharded, or the plain one.
        optimizer: over its parameters.
        batches: endless.
    """

    work: Training
    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: BatchStream

    @property
    def on_device(self) -> bool:
        """Whether its parameters lie on a GPU."""
        return any(parameter.is_cuda for parameter in self.model.parameters())

    def step(self, mark: Mark = lambda _what: None) -> None:
        """One optimizer step; only the last micro-batch's gradients are sent."""
        loss_of = batch_loss(self.work.parts.loss)
        for number in range(self.work.accumulate):
            is_last = number == self.work.accumulate - 1
            with _silent(self.model, not is_last):
                loss = loss_of(self.model, self.batches.next()) / self.work.accumulate
                mark("forward")
                loss.backward()  # type: ignore[no-untyped-call]
                mark("backward")
        parts = self.work.parts._replace(
            model=self.model, optimizer=self.optimizer, scaler=None, scheduler=None
        )
        update(parts, self.work.clip_norm)
        mark("optimizer")


def alone(work: Training) -> Trainee:
    """Without communication."""
    work.parts.model.train()
    return Trainee(work, work.parts.model, work.parts.optimizer, BatchStream(work.batches))


def distributed(work: Training, parallel: Parallel, group: dist.ProcessGroup | None = None) -> Trainee:
    """Wrapped for a process group; for the one of all ranks where none is given.

    Raises:
        InputError: it has no parameters to train, or cannot be wrapped.
    """
    model = work.parts.model.train()
    if isinstance(model, DistributedDataParallel):
        raise InputError(
            "the model is wrapped in DDP already; return the plain model, which is wrapped as --parallel says"
        )
    batches = BatchStream(work.batches)
    if parallel == "ddp":
        wrapped = DistributedDataParallel(model, process_group=group)
        return Trainee(work, wrapped, work.parts.optimizer, batches)
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard  # takes most of a second, which DDP does without

    device = next(model.parameters()).device.type
    mesh = None if group is None else DeviceMesh.from_group(group, device)
    for part in (*blocks(model), model):
        fully_shard(part, mesh=mesh)
    return Trainee(work, model, _anew(work.parts.optimizer, model), batches)


def silent(work: Training, parallel: Parallel, group: dist.ProcessGroup) -> Trainee:
    """Wrapped alike for a group that sends nothing: all that wrapping costs, without a message."""
    trainee = distributed(work, parallel, group)
    if isinstance(trainee.model, DistributedDataParallel):
        trainee.model.register_comm_hook(None, lambda _state, bucket: _as_it_is(bucket))
    return trainee


def _as_it_is(bucket: Any) -> torch.futures.Future[torch.Tensor]:
    """What DDP's own reducer expects of a group, which a fake one does not answer."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def _anew(optimizer: torch.optim.Optimizer, model: nn.Module) -> torch.optim.Optimizer:
    """The same kind over sharded parameters; the old one holds those that are gone."""
    taken = inspect.signature(type(optimizer)).parameters
    chosen = {name: value for name, value in optimizer.defaults.items() if name in taken}
    return type(optimizer)(model.parameters(), **chosen)


def state_bytes(trainee: Trainee) -> tuple[Bytes, Bytes]:
    """Bytes that are trained, and those of parameters, gradients and optimizer state, of one rank alone; sharded tensors tell their whole size."""
    trained = sum(parameter.nbytes for parameter in trainee.model.parameters() if parameter.requires_grad)
    held = sum(
        value.nbytes
        for state in trainee.optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    )
    return trained, 2 * trained + held


def unit_bytes(model: nn.Module) -> Bytes:
    """The largest group of parameters that FSDP2 gathers at once."""
    inside = blocks(model)
    sizes = [sum(parameter.nbytes for parameter in block.parameters()) for block in inside]
    whole = sum(parameter.nbytes for parameter in model.parameters())
    return max([whole - sum(sizes), *sizes])


@contextlib.contextmanager
def _silent(model: nn.Module, quiet: bool) -> Iterator[None]:
    """Without sending gradients."""
    if isinstance(model, DistributedDataParallel) and quiet:
        with model.no_sync():
            yield
        return
    sync: Any = getattr(model, "set_requires_gradient_sync", None)  # of FSDP2
    if sync is not None:
        sync(not quiet)
    yield
