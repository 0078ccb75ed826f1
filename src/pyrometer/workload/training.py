"""A training step as a workload."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.workload.counting import MaskSource, UnitCount, UnitCounter
from pyrometer.workload.inference import device_of
from pyrometer.workload.inputs import Arguments, as_arguments
from pyrometer.workload.state import preserved_globals, preserved_module, preserved_rng, preserved_state_dict
from pyrometer.workload.variant import DTYPES, Variant
from pyrometer.workload.workload import Mark, Session, Workload, user_code

PHASES = ("data", "h2d", "forward", "backward", "optimizer")


class Training(Workload):
    """One optimizer step: fetch a batch, forward, loss, backward, optimizer.

    Args:
        model: the module to train; parameters, buffers and gradients are restored afterwards.
        loss: `loss(output, target)` for batches that are `(input, target)` pairs; a function whose first parameter
            is called `model` is called as `loss(model, batch)`; `None` takes `output.loss`.
        optimizer: over the model's parameters; its state is restored afterwards.
        batches: an iterable of batches (a `DataLoader`, a list, …); it is started anew when it ends.
        accumulate: micro-batches per optimizer step.
        amp: dtype of `torch.autocast` around the forward pass, a torch dtype or its name.
        scaler: a `torch.amp.GradScaler`, for float16.
        scheduler: stepped once per optimizer step.
        unit: what a step processes, in the plural.
        per_step: units per micro-batch: a number or a function of the batch; by default the leading dimension.
        mask: where the padding mask or the lengths are in the batch.
        name: shown in reports; by default the class of the model.

    Raises:
        InputError: an argument is missing or of the wrong kind, or the optimizer holds other parameters.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., torch.Tensor] | None,
        optimizer: torch.optim.Optimizer,
        batches: Iterable[Any],
        *,
        accumulate: int = 1,
        amp: torch.dtype | str | None = None,
        scaler: torch.amp.GradScaler | None = None,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
        unit: str = "samples",
        per_step: UnitCount | None = None,
        mask: MaskSource | None = None,
        name: str | None = None,
    ) -> None:
        _require_parts(model, optimizer, batches, accumulate)
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.batches = batches
        self.accumulate = accumulate
        self.scaler = scaler
        self.scheduler = scheduler
        self.unit = unit
        self.per_step = per_step
        self.mask = mask
        self.name = name or f"{type(model).__name__} training"
        self.config = Variant().merged({"autocast": amp})

    def variant(self, **changes: Any) -> Training:
        """The same step under another configuration; model, optimizer and friends are copied where they must change."""
        other = copy.copy(self)
        other.config = self.config.merged(changes)
        if other.config.batch_size != self.config.batch_size:
            raise InputError("batch_size: a training workload takes its batch size from its batches; change the loader")
        return other

    def phases(self) -> tuple[str, ...]:
        """`data`, `h2d` (host to device), `forward`, `backward` and `optimizer`."""
        return PHASES

    @contextlib.contextmanager
    def open(self) -> Iterator[TrainingSession]:
        """Put the model in training mode and restore parameters, buffers, gradients and optimizer at the end."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(preserved_globals())
            stack.enter_context(preserved_rng())
            parts = self._own_parts() if self._must_copy() else self._users_parts(stack)
            model, optimizer, scaler, scheduler = parts
            model.train()
            session = TrainingSession(self, self.config.compile_model(model), optimizer)
            session.scaler, session.scheduler = scaler, scheduler
            stack.callback(session.close)
            stack.enter_context(torch.enable_grad())
            yield session

    def _must_copy(self) -> bool:
        return self.config.dtype is not None or self.config.memory_format is not None

    def _own_parts(self) -> tuple[Any, Any, Any, Any]:
        parts = copy.deepcopy((self.model, self.optimizer, self.scaler, self.scheduler))
        bare = Variant(dtype=self.config.dtype, memory_format=self.config.memory_format)
        model = parts[0]
        if bare.dtype is not None:
            model.to(dtype=DTYPES[bare.dtype])
        if bare.memory_format is not None:
            model.to(memory_format=getattr(torch, "channels_last" if bare.memory_format == "channels_last" else "contiguous_format"))
        return parts

    def _users_parts(self, stack: contextlib.ExitStack) -> tuple[Any, Any, Any, Any]:
        stack.enter_context(preserved_module(self.model, parameters=True))
        for owner in (self.optimizer, self.scaler, self.scheduler):
            stack.enter_context(preserved_state_dict(owner))
        return self.model, self.optimizer, self.scaler, self.scheduler


class TrainingSession(Session):
    """An opened `Training`."""

    scaler: torch.amp.GradScaler | None = None
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None

    def __init__(self, work: Training, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model = model
        self.optimizer = optimizer
        self.device = device_of(work.model)
        self.threads = work.config.threads or torch.get_num_threads()
        self._work = work
        self._variant = work.config
        self._autocast = DTYPES[work.config.autocast] if work.config.autocast else None
        self._counter = UnitCounter(work.per_step, work.mask)
        self._batches: Iterator[Any] = iter(())
        self._loss = _loss_caller(work.loss)

    def close(self) -> None:
        """Let go of the batch iterator, so that its workers end."""
        self._batches = iter(())

    def prepare(self) -> None:
        """Nothing: fetching a batch is part of a training step."""

    def step(self, prepared: None = None) -> torch.Tensor:  # noqa: ARG002
        """One optimizer step; returns the detached loss of the last micro-batch."""
        return self.phased_step(_no_mark)

    def phased_step(self, mark: Mark) -> torch.Tensor:
        """One optimizer step with phases."""
        loss = torch.zeros(())
        for _ in range(self._work.accumulate):
            batch = self._next_batch()
            mark("data")
            batch = self._to_device(batch)
            mark("h2d")
            loss = self._forward(batch)
            mark("forward")
            self._backward(loss)
            mark("backward")
        self._update()
        mark("optimizer")
        return loss.detach()

    def _next_batch(self) -> Any:
        batch = next(self._batches, None)
        if batch is None:
            self._batches = iter(self._work.batches)
            batch = next(self._batches, None)
            if batch is None:
                raise InputError("batches: the iterable is empty; a training workload needs at least one batch")
        self._counter.add(_batch_arguments(batch))
        return batch

    def _to_device(self, batch: Any) -> Any:
        def move(tensor: torch.Tensor) -> torch.Tensor:
            moved = tensor.to(self.device, non_blocking=tensor.is_pinned()) if tensor.device != self.device else tensor
            return self._variant.apply_to_tensor(moved)

        return pytree.tree_map_only(torch.Tensor, move, batch)

    def _forward(self, batch: Any) -> torch.Tensor:
        if self._autocast is None:
            return self._loss(self.model, batch)
        with torch.autocast(self.device.type, dtype=self._autocast):
            return self._loss(self.model, batch)

    def _backward(self, loss: torch.Tensor) -> None:
        loss = loss / self._work.accumulate if self._work.accumulate > 1 else loss
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def _update(self) -> None:
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.scheduler is not None:
            self.scheduler.step()

    @property
    def units_per_step(self) -> float:
        """Mean units per optimizer step so far."""
        return self._counter.units_per_step * self._work.accumulate

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding so far, with a mask."""
        return self._counter.padding_ratio


def _no_mark(_phase: str) -> None:
    """The mark of an untimed phase."""


def _require_parts(model: Any, optimizer: Any, batches: Any, accumulate: int) -> None:
    if not isinstance(model, nn.Module):
        raise InputError(f"model: got {type(model).__name__}; it must be a torch.nn.Module")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InputError(
            f"optimizer: got {type(optimizer).__name__}; training needs a torch.optim.Optimizer over model.parameters()"
        )
    own = {id(p) for p in model.parameters()}
    if not any(id(p) in own for group in optimizer.param_groups for p in group["params"]):
        raise InputError("optimizer: holds none of the model's parameters; build it from model.parameters()")
    if not isinstance(batches, Iterable) or isinstance(batches, torch.Tensor):
        raise InputError(f"batches: got {type(batches).__name__}; it must be an iterable of batches")
    if accumulate < 1:
        raise InputError(f"accumulate: got {accumulate}; it must be at least 1")


def _loss_caller(loss: Callable[..., torch.Tensor] | None) -> Callable[[nn.Module, Any], torch.Tensor]:
    if loss is not None and _takes_model(loss):
        return loss
    return lambda model, batch: _paired_loss(model, batch, loss)


def _takes_model(loss: Callable[..., Any]) -> bool:
    if isinstance(loss, nn.Module):
        return False
    try:
        parameters = list(inspect.signature(loss).parameters)
    except (TypeError, ValueError):
        return False
    return bool(parameters) and parameters[0] == "model"


def _paired_loss(model: nn.Module, batch: Any, loss: Callable[..., torch.Tensor] | None) -> torch.Tensor:
    if loss is None:
        arguments = as_arguments(tuple(batch) if isinstance(batch, list) else batch)
        output = model(*arguments.args, **arguments.kwargs)
        found: torch.Tensor = output.loss if hasattr(output, "loss") else output["loss"]
        return found
    if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
        raise InputError(
            f"batches: got a batch of {type(batch).__name__}; loss(output, target) needs (input, target) pairs, "
            "anything else a loss(model, batch)"
        )
    arguments = as_arguments(tuple(batch[0]) if isinstance(batch[0], list) else batch[0])
    return loss(model(*arguments.args, **arguments.kwargs), batch[1])


def _batch_arguments(batch: Any) -> Arguments:
    if isinstance(batch, list):
        return Arguments(tuple(batch), {})
    try:
        return as_arguments(batch)
    except InputError:
        return Arguments((batch,), {})


def open_failure(work: Workload) -> str:
    """What to call a failure while a workload is being prepared."""
    return f"preparing {work.name}"


__all__ = ["Training", "TrainingSession", "user_code"]
