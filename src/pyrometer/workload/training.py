"""A training step as a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.counting import MaskSource, UnitCount, UnitCounter
from pyrometer.workload.inference import devices_of
from pyrometer.workload.losses import batch_arguments, batch_loss
from pyrometer.workload.parts import TrainingParts, is_lazy
from pyrometer.workload.state import preserved_grads, tensor_bytes
from pyrometer.workload.surroundings import Surroundings
from pyrometer.workload.updating import update
from pyrometer.workload.variant import Variant
from pyrometer.workload.workload import Mark, Session, Workload


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
        scheduler: stepped once per optimizer step; not where the scaler skipped it.
        clip_norm: largest norm of all gradients together, to which they are clipped.
        unit: what a step processes, in the plural.
        per_step: units per micro-batch: a number or a function of the batch; by default the leading dimension.
        mask: where the padding mask or the lengths are in the batch.
        name: shown in reports; by default the class of the model.

    Raises:
        InputError: an argument is missing or of the wrong kind, or the optimizer holds other parameters.
    """

    unsupported = frozenset({"batch_size"})  # the batches are the user's; their size is the loader's business

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
        clip_norm: float | None = None,
        unit: str = "samples",
        per_step: UnitCount | None = None,
        mask: MaskSource | None = None,
        name: str | None = None,
    ) -> None:
        self.parts = TrainingParts(model, loss, optimizer, scaler, scheduler)
        _require_parts(self.parts)
        _require_batches(batches, accumulate)
        if clip_norm is not None and not clip_norm > 0:
            raise InputError(
                f"clip_norm: got {clip_norm!r}; it must be a number above 0, or None to clip nothing"
            )
        self.batches = batches
        self.accumulate = accumulate
        self.clip_norm = clip_norm
        self.unit = unit
        self.per_step = per_step
        self.mask = mask
        self.name = name or f"{type(getattr(model, '_orig_mod', model)).__name__} training"
        self.config = Variant().merged({"autocast": amp})

    def phases(self) -> tuple[str, ...]:
        """`data`, `h2d` (host to device), `forward`, `backward` and `optimizer`."""
        return ("data", "h2d", "forward", "backward", "optimizer")

    def snapshot_bytes(self) -> Bytes:
        """Parameters, buffers and optimizer state, once; gradients are set aside, not copied."""
        return tensor_bytes(self.parts.tensors())

    @contextlib.contextmanager
    def open(self) -> Iterator[TrainingSession]:
        """Put the model in training mode; parameters, buffers, gradients and optimizer are as before at the end.

        The session trains the user's own objects, and restores them. It trains a copy where dtype or memory format
        change, where parameters are lazy, and while another session trains the same model: then what the user's
        objects hold at that moment is the start.
        """
        with self._entered() as surroundings, contextlib.ExitStack() as stack:
            if self.config.changes_parameters or self.parts.in_use or is_lazy(self.parts.model):
                parts = self.parts.copied(self.config)
            else:
                stack.enter_context(self.parts.borrowed())
                parts = self.parts
            for module in parts.modules:
                module.train()
            session = TrainingSession(self, parts, surroundings)
            stack.callback(session.close)
            yield session


class TrainingSession(Session):
    """An opened `Training`; `batches` is where its steps fetch theirs from, and `loss_seen` is told of each micro-batch's loss."""

    def __init__(self, work: Training, parts: TrainingParts, surroundings: Surroundings) -> None:
        device = next(iter(devices_of(parts.model)), torch.device("cpu"))
        super().__init__(device, surroundings)
        self.parts = parts
        self.model = work.config.compile_model(parts.model)
        self._accumulate = work.accumulate
        self._clip_norm = work.clip_norm
        self._variant = work.config
        self._converts = work.config.changes_parameters
        self._autocast = work.config.autocast_context(device)
        self._loss = batch_loss(parts.loss)
        self._counter = UnitCounter(work.per_step, work.mask)
        self.batches = BatchStream(work.batches)
        self._users_parts = None if parts is work.parts else work.parts
        self.loss_seen: Callable[[torch.Tensor], None] | None = None

    def close(self) -> None:
        """Let go of the batch iterator, so that its workers end."""
        self.batches.close()

    def prepare(self) -> None:
        """Nothing of the step: fetching a batch is part of it. Counts the units of the last one."""
        self._counter.count()

    def step(self, prepared: None = None) -> torch.Tensor:  # noqa: ARG002 - part of the contract
        """One optimizer step; returns the detached loss of the last micro-batch."""
        return self._run(_no_mark)

    def phased_step(self, mark: Mark) -> torch.Tensor:
        """One optimizer step with phases; with `accumulate`, the phases of each micro-batch in turn."""
        loss = self._run(mark)
        self._counter.count()
        return loss

    def _run(self, mark: Mark) -> torch.Tensor:
        with torch.enable_grad():
            for _ in range(self._accumulate):
                batch = self.batches.next()
                self._counter.note(batch_arguments(batch))
                mark("data")
                batch = self._to_device(batch)
                mark("h2d")
                if self.inputs_seen is not None:
                    self.inputs_seen(batch)
                loss = self._forward(batch)
                mark("forward")
                if self.loss_seen is not None:
                    self.loss_seen(loss)
                self._backward(loss)
                mark("backward")
            update(self.parts, self._clip_norm)
            mark("optimizer")
        return loss.detach()

    def _to_device(self, batch: Any) -> Any:
        # Pairs of tensors, the common case, without the microseconds of a walk through the tree.
        if isinstance(batch, torch.Tensor):
            return self._moved(batch)
        if type(batch) in {tuple, list}:
            return type(batch)([self._to_device(part) for part in batch])
        return pytree.tree_map_only(torch.Tensor, self._moved, batch)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device != self.device:
            tensor = tensor.to(self.device, non_blocking=tensor.is_pinned())
        return self._variant.apply_to_tensor(tensor) if self._converts else tensor

    def _forward(self, batch: Any) -> torch.Tensor:
        if self._autocast is None:
            return self._loss(self.model, batch)
        with self._autocast:
            return self._loss(self.model, batch)

    def _backward(self, loss: torch.Tensor) -> None:
        loss = loss / self._accumulate if self._accumulate > 1 else loss
        loss = self.parts.scaler.scale(loss) if self.parts.scaler else loss
        if self._users_parts is None:
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            _first_backward(loss, self._users_parts)
            self._users_parts = None

    @property
    def units_per_step(self) -> float:
        """Mean units per optimizer step so far."""
        return self._counter.units_per_step * self._accumulate

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding so far, with a mask."""
        return self._counter.padding_ratio


def _no_mark(_phase: str) -> None:
    """The mark of an untimed phase."""


def _first_backward(loss: torch.Tensor, users: TrainingParts) -> None:
    """Run a copy's first backward pass, and refuse to go on when it reaches the user's own parameters."""
    with preserved_grads(users.with_gradients()):
        loss.backward()  # type: ignore[no-untyped-call]
        if any(tensor.grad is not None for tensor in users.with_gradients()):
            raise InputError(
                "loss: uses the model from outside its arguments, so it cannot be trained as a copy; "
                "write it as loss(model, batch)"
            )


def _require_parts(parts: TrainingParts) -> None:
    if not isinstance(parts.model, nn.Module):
        raise InputError(f"model: got {type(parts.model).__name__}; it must be a torch.nn.Module")
    if not isinstance(parts.optimizer, torch.optim.Optimizer):
        raise InputError(
            f"optimizer: got {type(parts.optimizer).__name__}; "
            "training needs a torch.optim.Optimizer over model.parameters()"
        )
    if isinstance(parts.optimizer, torch.optim.LBFGS):
        raise InputError(
            "optimizer: LBFGS evaluates a closure several times per step; use a first-order optimizer"
        )
    own = {id(parameter) for parameter in parts.model.parameters()}
    if not any(id(tensor) in own for tensor in parts.trained()):
        raise InputError("optimizer: holds none of the model's parameters; build it from model.parameters()")
    if parts.loss is not None and not callable(parts.loss):
        raise InputError(
            f"loss: got {type(parts.loss).__name__}; it must be callable, or None for output.loss"
        )
    if isinstance(parts.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise InputError(
            "scheduler: ReduceLROnPlateau needs a metric per epoch and is no part of a step; leave it out"
        )


def _require_batches(batches: Any, accumulate: Any) -> None:
    if not isinstance(batches, Iterable) or isinstance(batches, torch.Tensor):
        raise InputError(f"batches: got {type(batches).__name__}; it must be an iterable of batches")
    if not isinstance(accumulate, int) or accumulate < 1:
        raise InputError(f"accumulate: got {accumulate!r}; it must be a whole number of at least 1")
