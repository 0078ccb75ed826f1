"""Gradients that live shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import Case
from pyrometer.memory.advice.lives import Life
from pyrometer.memory.advice.observing import Observed
from pyrometer.memory.advice.rules.optimizers import remade
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.quantity import counted, format_bytes


class SteppingInBackward(torch.optim.Optimizer):
    """An optimizer that updates each parameter as soon as its gradient is there, and lets the gradient go.

    Args:
        tensors: what it trains.
        make: makes the optimizer of one tensor.

    `step()` and `zero_grad()` have nothing left to do.
    """

    def __init__(
        self, tensors: list[torch.Tensor], make: Callable[[list[torch.Tensor]], torch.optim.Optimizer]
    ) -> None:
        super().__init__(tensors, {})
        self.optimizers = {tensor: make([tensor]) for tensor in tensors}
        for tensor in tensors:
            tensor.register_post_accumulate_grad_hook(self._update)  # type: ignore[no-untyped-call]

    def _update(self, tensor: torch.Tensor) -> None:
        self.optimizers[tensor].step()
        self.optimizers[tensor].zero_grad(set_to_none=True)
        self.state[tensor] = self.optimizers[tensor].state[tensor]

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Nothing: every parameter is updated already."""


def step_in_backward(case: Case) -> Iterator[Advice]:
    """Update each parameter inside of the backward pass, so that no two gradients need to live."""
    work = case.training
    if work is None or work.accumulate > 1 or work.parts.scaler is not None:
        return
    optimizer = work.parts.optimizer
    group = optimizer.param_groups[0] | {"params": [None]}
    saving = case.tried(
        "updating parameters inside of the backward pass",
        ("gradients",),
        lambda: predict_memory(
            work,
            optimizer=lambda tensors: SteppingInBackward(
                tensors, lambda one: remade(type(optimizer), [group], {}, one)
            ),
        ),
    )
    if saving is None:
        return
    name = type(optimizer).__name__
    yield Advice(
        slug="step-in-backward",
        fix_class="semantic",
        title="update each parameter inside of the backward pass",
        why=f"{case.where}, where {case.holds('gradients')}",
        sketch=f"optimizers = {{p: torch.optim.{name}([p], lr={float(optimizer.param_groups[0].get('lr', 1e-3)):g}) for p in model.parameters()}}\n"
        "\n"
        "def update(p):\n"
        "    optimizers[p].step()\n"
        "    optimizers[p].zero_grad(set_to_none=True)\n"
        "\n"
        "for p in model.parameters():\n"
        "    p.register_post_accumulate_grad_hook(update)\n"
        "# and no optimizer.step() after loss.backward()",
        effect="the same update; gradients are gone after the backward pass, so they can neither be clipped by their joint norm, nor "
        "accumulated, nor unscaled",
        gain=saving.gain,
    )


def kept_gradients(case: Case) -> Iterator[Advice]:
    """Gradients of one step that are still there in the next, though a new pass begins."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None or case.training is not None:
        return
    ends = [phase.event for phase in observed.log.phases if phase.name == "rest"]
    kept = [
        index
        for index, allocation in enumerate(observed.log.allocations)
        if allocation.category == "gradients"
        and allocation.born < ends[0]
        and (allocation.died is None or allocation.died >= ends[-1])
    ]
    changed = {index: _while_needed(observed, lives[index], index, ends) for index in kept}
    saving = case.relived(changed)
    if saving is None:
        return
    total = sum(case.allocation(index).nbytes for index in kept)
    yield Advice(
        slug="zero-grad-to-none",
        fix_class="semantic",
        lever="set_to_none",
        title="let gradients go between steps",
        why=f"{case.where}; {counted(len(kept), 'gradient')} of one step are still held in the forward pass of the next",
        sketch="optimizer.zero_grad(set_to_none=True)  # right after optimizer.step()",
        effect=f"the next forward pass runs without {format_bytes(total)} of gradients; `p.grad` is None in between",
        gain=saving.gain,
    )


def _while_needed(observed: Observed, life: Life, index: int, ends: list[int]) -> list[Life]:
    """A gradient's life in each step, from the backward pass to the end."""
    lives: list[Life] = []
    for begin, end in pairwise([0, *ends]):
        touched = (
            use.event
            for use in observed.uses
            if begin < use.event <= end and use.backward and index in (*use.arguments, *use.results)
        )
        first = next(touched, None)
        if first is not None:
            lives.append(Life(max(first - 1, life.born), end, life.nbytes))
    return lives
