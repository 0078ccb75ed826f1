"""One optimizer step of the loop: micro-batches, autocast, accumulation that communicates once, and the update."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pyrometer.tuning.loop.batches import END, PositionedBatches
from pyrometer.tuning.loop.timing import StepTimes
from pyrometer.workload.changes.micro_batches import micro_batches, num_samples, part_sizes
from pyrometer.workload.counting import UnitCounter
from pyrometer.workload.losses import batch_arguments, batch_loss
from pyrometer.workload.parts import TrainingParts
from pyrometer.workload.training import Training
from pyrometer.workload.updating import update

COUNTED_EVERY = 50
"""A mask or a function of the user's may wait for the device: the batches of one step of so many are counted by it."""


class LoopStep:
    """Runs the steps of a training on the user's own objects."""

    def __init__(
        self,
        work: Training,
        parts: TrainingParts,
        batches: PositionedBatches,
        times: StepTimes,
        device: torch.device,
    ) -> None:
        self.parts = parts
        self.micro_batches = 1
        self.num_overflows = 0
        self.num_batches = 0
        self._counts_all = work.mask is None and not callable(work.per_step)
        self.counter = UnitCounter(work.per_step, work.mask)
        self._work = work
        self._batches = batches
        self._times = times
        self._model = work.config.compile_model(parts.model)
        self._loss = batch_loss(parts.loss)
        self._sum = getattr(parts.loss, "reduction", "mean") == "sum"
        self._autocast = work.config.autocast_context(device) or _NOTHING
        self._syncing = _syncing(parts.model)
        self._taken: list[tuple[Any, bool]] = []

    def run(self, *, again: bool = False) -> list[torch.Tensor] | None:
        """One step; the detached losses of its batches, or `None` where the epoch had ended. Nothing waits for the device.

        Args:
            again: start the last step once more, which failed, with the batches that it had taken.
        """
        if again:
            self.parts.optimizer.zero_grad(set_to_none=True)
        else:
            self._times.begin()
            self._taken = []
        losses = [self._learn(batch, is_last=last) for batch, last in self._taken]
        last = bool(self._taken) and self._taken[-1][1]
        while not last:
            batch = self._take(within=bool(losses))
            if batch is END:
                break
            last = len(losses) + 1 == self._work.accumulate or self._batches.is_last()
            self._taken.append((batch, last))
            losses.append(self._learn(batch, is_last=last))
        if not losses:
            return None
        self._finish(len(losses))
        return losses

    @property
    def num_samples(self) -> int:
        """Of the smallest batch of the present step."""
        return min(num_samples(batch) for batch, _ in self._taken)

    def _take(self, *, within: bool) -> Any:
        fetched_ns, began_ns = self._batches.fetch_ns, time.perf_counter_ns()
        batch = self._batches.next(within=within)
        fetched_ns = self._batches.fetch_ns - fetched_ns
        if batch is not END:
            self._times.loaded(fetched_ns, time.perf_counter_ns() - began_ns - fetched_ns)
            self.num_batches += 1
            if self._counts_all or self._times.num_steps % COUNTED_EVERY == 0:
                self.counter.note(batch_arguments(batch))
                self.counter.count()
        return batch

    def _learn(self, batch: Any, *, is_last: bool) -> torch.Tensor:
        """Forward and backward of one batch, in as many parts as it takes."""
        pieces, weights = [batch], [1.0]
        if self.micro_batches > 1:
            pieces = micro_batches(batch, self.micro_batches)
            total = num_samples(batch)
            sizes = part_sizes(total, self.micro_batches)
            weights = [1.0 if self._sum else size / total for size in sizes]
        losses = []
        for number, (piece, weight) in enumerate(zip(pieces, weights, strict=True), 1):
            with self._syncing(is_last and number == len(pieces)):
                with self._autocast:
                    loss = self._loss(self._model, piece)
                loss = loss * weight if weight != 1 else loss
                self._times.mark("forward")
                losses.append(loss.detach())
                self._backward(loss)
                self._times.mark("backward")
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum()

    def _backward(self, loss: torch.Tensor) -> None:
        loss = loss / self._work.accumulate if self._work.accumulate > 1 else loss
        loss = loss if self.parts.scaler is None else self.parts.scaler.scale(loss)
        loss.backward()  # type: ignore[no-untyped-call]

    def _finish(self, num_batches: int) -> None:
        if num_batches < self._work.accumulate:
            # The last step of an epoch: each batch counts for its share of those that there are.
            grads = [tensor.grad for tensor in self.parts.trained() if tensor.grad is not None]
            torch._foreach_mul_(grads, self._work.accumulate / num_batches)
        self.num_overflows += not update(self.parts, self._work.clip_norm)
        self._times.mark("optimizer")
        self._times.end()
        self._taken = []


def _syncing(model: nn.Module) -> Callable[[bool], contextlib.AbstractContextManager[Any]]:
    """A context for one backward pass, which averages gradients over ranks only where it is told to.

    `no_sync` of DDP and FSDP, `set_requires_gradient_sync` of FSDP2; a model that has neither needs neither.
    """
    fsdp2: Any = getattr(model, "set_requires_gradient_sync", None)
    if fsdp2 is not None:

        def told(is_last: bool) -> contextlib.AbstractContextManager[Any]:
            fsdp2(is_last)
            return contextlib.nullcontext()

        return told
    no_sync: Any = getattr(model, "no_sync", None)
    if no_sync is None:
        return lambda _is_last: _NOTHING
    return lambda is_last: _NOTHING if is_last else no_sync()


_NOTHING = contextlib.nullcontext()
