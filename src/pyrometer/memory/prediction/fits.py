"""The largest batch that a memory size takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import psutil
import torch

from pyrometer.errors import InputError
from pyrometer.memory.prediction.growth import Growth, grow
from pyrometer.memory.prediction.lifetimes import Lifetimes, sizes_of
from pyrometer.memory.prediction.predict import needed
from pyrometer.memory.prediction.rehearsal import rehearse
from pyrometer.memory.prediction.settings import OptimizerChoice, settings_of
from pyrometer.memory.prediction.sizes import Dims
from pyrometer.memory.profile import Fit
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.workload import Workload

CARDS_GIB = (8, 16, 24, 40, 80, 141)
"""Memory of common accelerators."""

MOST = 2**24
"""Batches beyond are not looked for, and an answer that reaches it says so: there, nothing that matters grows with the batch."""

TIME_LIMIT_S = 20.0


def largest_batch_that_fits(
    work: Workload,
    budgets_bytes: Sequence[Bytes] | None = None,
    *,
    sequence: int | None = None,
    dims: Dims | None = None,
    dtype: torch.dtype | str | None = None,
    optimizer: OptimizerChoice | None = None,
    checkpoint: Sequence[str] | str | None = None,
    accumulate: int | None = None,
    amp: torch.dtype | str | bool | None = None,
    device: torch.device | str | None = None,
    growth: Growth | None = None,
    time_limit_s: Seconds = TIME_LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> list[Fit]:
    """Say how large the batch may be in each memory size, before anything runs out of memory.

    The answer follows from how every allocation grows, whichever phase the peak is in then, and is verified: the batch
    is rehearsed and fits, the next larger one is and does not. With accumulation it is the micro-batch, of
    what `micro_batched` made the whole batch that is split.

    On the CPU a budget holds the tensors; the interpreter and its libraries need a few hundred MiB beside. With CUDA's
    rules it holds what the allocator reserves and the context.

    Args:
        work: a training or an inference.
        budgets_bytes: memory sizes; by default the device's own, and those of common accelerators.
        sequence: another length.
        dims: which dimensions of which inputs are batch and sequence, where that cannot be told.
        dtype: of parameters and inputs.
        optimizer: another optimizer.
        checkpoint: modules to recompute.
        accumulate: micro-batches per step.
        amp: dtype of autocast; `False` for none.
        device: `"cuda"` for CUDA's rules.
        growth: how the program grows, where that is known already.
        time_limit_s: rehearsals that would likely end later, by the longest before, are left out: such answers follow from
            the growth alone, and are not verified.
        clock: tells the time.

    Raises:
        InputError: a budget is illegal, or the batch's dimension cannot be told.
        NotPredictableError: the program needs the values of tensors.
        UserProgramError: a step raised.

    >>> from torch import nn
    >>> import pyrometer as pm
    >>> work = pm.Inference(nn.Linear(256, 256), torch.randn(64, 256))
    >>> [found] = largest_batch_that_fits(work, [2**20])
    >>> found.max_batch, found.peak_bytes <= 2**20 < found.peak_bytes + 2048, found.verified
    (383, True, True)
    """
    begin = clock()
    settings = settings_of(
        sequence=sequence,
        dims=dims,
        dtype=dtype,
        optimizer=optimizer,
        checkpoint=checkpoint,
        accumulate=accumulate,
        amp=amp,
        device=device,
    )
    budgets = _budgets(budgets_bytes, settings.device)
    growth = growth or grow(work, settings, sequence=False)
    search = _Search(growth, begin + time_limit_s, clock)
    return [search.fit(budget) for budget in budgets]


class _TimeUp(Exception):  # noqa: N818 - an outcome, not an error
    """One more rehearsal would end too late."""


class _Search:
    """Looks for the largest batch, in the law of growth first and then in rehearsals."""

    def __init__(self, growth: Growth, end_s: Seconds, clock: Callable[[], float]) -> None:
        self._growth = growth
        self._end_s, self._clock = end_s, clock
        self._longest_s: Seconds = 0.0
        self._peaks: dict[int, tuple[Bytes, Bytes]] = {}

    def fit(self, budget: Bytes) -> Fit:
        """The largest batch for a budget."""
        if not self._grows():
            return Fit(budget_bytes=budget, max_batch=None, peak_bytes=self._growth.totals[0].nbytes["peak"])
        growth = self._growth
        guess = self._told(budget)
        try:
            found = largest(
                lambda batch: self._rehearsed(batch)[1] <= budget, max(guess, 1), step=1 if growth.even else 0
            )
        except _TimeUp:
            peak = growth.peak(guess).nbytes if guess and growth.even else None
            return Fit(budget_bytes=budget, max_batch=guess or None, peak_bytes=peak, is_capped=guess >= MOST)
        return Fit(
            budget_bytes=budget,
            max_batch=found or None,
            peak_bytes=self._rehearsed(found)[0] if found else None,
            verified=found < MOST,
            is_capped=found >= MOST,
        )

    def _told(self, budget: Bytes) -> int:
        """The largest batch by how the program grows: every allocation, or where these differ the line through totals."""
        growth = self._growth
        if growth.even:
            return largest(lambda batch: needed(*growth.needs(batch)) <= budget, growth.batch)
        points = sorted({(total.batch, total.nbytes["peak"]) for total in growth.totals})
        (first, low), (last, high) = points[0], points[-1]
        return int(min(max(first + (budget - low) * (last - first) / max(high - low, 1), 0), MOST))

    def _grows(self) -> bool:
        totals = self._growth.totals
        return any(total.nbytes["peak"] != totals[0].nbytes["peak"] for total in totals)

    def _rehearsed(self, batch: int) -> tuple[Bytes, Bytes]:
        """Peak, and what a budget must hold, at a batch."""
        if batch not in self._peaks:
            begin = self._clock()
            if begin + self._longest_s > self._end_s:
                raise _TimeUp
            rehearsal = rehearse(self._growth.work, replace(self._growth.settings, batch=batch))
            lives, sizes = Lifetimes.of(rehearsal.log, cuda=rehearsal.emulates_cuda), sizes_of(rehearsal.log)
            peak = lives.peak(sizes).nbytes
            self._peaks[batch] = peak, needed(peak, lives.reserved(sizes))
            self._longest_s = max(self._longest_s, self._clock() - begin)
        return self._peaks[batch]


def largest(fits: Callable[[int], bool], guess: int, *, step: int = 0, most: int = MOST) -> int:
    """The largest number of at least 1 that fits, where all smaller ones do too; 0 when none does.

    Args:
        fits: whether a number fits.
        guess: where to begin.
        step: the first step away from the guess; by default the guess itself.
        most: the largest answer.

    >>> largest(lambda n: n <= 37, 8), largest(lambda n: n <= 37, 37, step=1), largest(lambda n: False, 8)
    (37, 37, 0)
    """
    guess = min(guess, most)
    step = step or guess
    low, high = 0, most + 1
    if fits(guess):
        low = guess
        while low < most and fits(min(low + step, most)):
            low, step = min(low + step, most), step * 2
        high = min(low + step, most + 1)
    else:
        high = guess
        while high - step > 0 and not fits(high - step):
            high, step = high - step, step * 2
        low = max(high - step, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def device_bytes(device: str | None = None) -> Bytes:
    """Memory of this machine, or of its accelerator where there is one."""
    if device != "cpu" and torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory)
    return int(psutil.virtual_memory().total)


def _budgets(given: Sequence[Any] | None, device: str | None) -> list[Bytes]:
    if given is None:
        return sorted({device_bytes(device), *(gib << 30 for gib in CARDS_GIB)})
    for budget in given:
        if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
            raise InputError(
                f"budgets_bytes: got {budget!r}; each must be a whole number of bytes, at least 1"
            )
    return list(given)
