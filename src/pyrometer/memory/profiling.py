"""Profiling the memory of a workload: recorded, cross-checked with the allocator, and predicted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace
from torch import nn

from pyrometer.bench.garbage import settled
from pyrometer.bench.stage import Progress
from pyrometer.errors import PyrometerError
from pyrometer.memory.advice.advise import TIME_LIMIT_S, weigh
from pyrometer.memory.leaks.watch import watch_memory
from pyrometer.memory.ledger.profile_of import profile_of_log
from pyrometer.memory.levels import PlainRun, run_plainly
from pyrometer.memory.prediction.fits import largest_batch_that_fits
from pyrometer.memory.prediction.formulas import formulas
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.prediction.scaling import scaling_laws
from pyrometer.memory.prediction.time_limit import rehearsals_within
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.memory.recording.steps import STEPS, record_steps
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.variant import is_compiled
from pyrometer.workload.workload import Workload, require_workload

COMPILED = "the allocator's events, since compiled code cannot be watched operator by operator"
OPERATORS = "every operator, and cross-checked with the allocator's events"

RECORDED = ("activations", "gradients")
"""Categories that only a backward pass, or one that could follow, makes."""

T = TypeVar("T")

INTERRUPTED = "Ctrl-C ended it after the steps were recorded: what had not been looked at by then is missing"


@settled()  # each of the stages collects what the one before left
def profile_memory(
    work: Workload,
    *,
    steps: int = STEPS,
    predict: bool = True,
    predict_from: Bytes = 0,
    predict_s: Seconds = math.inf,
    scaling: bool = True,
    budgets_bytes: list[Bytes] | None = None,
    leak_steps: int = 0,
    weigh_s: Seconds = TIME_LIMIT_S,
    budget_s: Seconds | None = None,
    progress: Progress | None = None,
) -> MemoryProfile:
    """Say what a workload's memory is for: at the peak, over time, by category, line, module, operator and dtype.

    A few steps run with every operator recorded, a few under the profiler, whose account of the allocator is the
    independent check, and a few plainly. Then the same is predicted on tensors without data, for this batch and others.
    Ctrl-C once steps are recorded ends it; what was found until then is returned, and says so.

    Args:
        work: what to profile; its state is restored.
        steps: steps to record; the optimizer makes its state in the first.
        predict: predict the step on tensors without data, and what would lower its peak.
        predict_from: only from this peak on, or where anything is kept for a backward pass: torch's tensors without data import
            its compiler, which takes longer than many a step.
        predict_s: time that a run of the step without data may take: of thousands of small operators it takes minutes.
        scaling: and from there how it grows with the batch, and the largest batch that fits.
        budgets_bytes: memory sizes to fit the batch into; by default those of common devices.
        leak_steps: watch so many further steps for memory that stays; none by default.
        weigh_s: time to rehearse changes that could lower the peak.
        budget_s: nothing more is begun after so long, and notes say what is missing; the recorded steps always run.
        progress: told of the share done.

    Raises:
        InputError: the workload cannot be prepared.
        UserProgramError: a step raised.

    >>> import torch, pyrometer as pm
    >>> work = pm.Inference(torch.nn.Linear(256, 256), torch.randn(64, 256))
    >>> found = pm.profile_memory(work, predict=False)
    >>> found.ledger_bytes["parameters"], found.ledger_bytes["inputs"], sum(found.ledger_bytes.values()) == found.peak_bytes
    (263168, 65536, True)
    """
    require_workload(work)
    tell = progress or _silent
    ends_s = None if budget_s is None else time.monotonic() + budget_s
    tell(0.0, "running plainly")
    plain = run_plainly(work, steps=steps)
    tell(0.1, "recording")
    profile = _recorded(work, steps, plain)
    chosen = _Further(predict, predict_from, predict_s, scaling, budgets_bytes, leak_steps, weigh_s, ends_s)
    try:
        for fuller in _further(profile, work, chosen, tell):
            profile = fuller
    except KeyboardInterrupt:
        return replace(profile, interrupted=True, notes=[*profile.notes, INTERRUPTED])
    return profile


class _Further(NamedTuple):
    """What is looked at beyond the recorded steps, as `profile_memory` was asked."""

    predict: bool
    predict_from: Bytes
    predict_s: Seconds
    scaling: bool
    budgets_bytes: list[Bytes] | None
    leak_steps: int
    weigh_s: Seconds
    ends_s: Seconds | None

    def left_s(self) -> Seconds:
        """Until the budget is spent."""
        return math.inf if self.ends_s is None else self.ends_s - time.monotonic()


def _further(
    profile: MemoryProfile, work: Workload, chosen: _Further, tell: Progress
) -> Iterator[MemoryProfile]:
    """The profile with more and more of it known."""
    predict = chosen.predict and (
        profile.peak_bytes >= chosen.predict_from or any(profile.ledger_bytes.get(name) for name in RECORDED)
    )
    skipped: list[str] = []
    predicted_s = 0.0
    if predict:
        began_s = time.monotonic()
        with rehearsals_within(chosen.predict_s):
            profile = _with_prediction(profile, work, tell)
        predicted_s = time.monotonic() - began_s
        yield profile
        if chosen.scaling and profile.predicted is not None and chosen.left_s() > 0:
            profile = _with_scaling(profile, work, chosen.budgets_bytes, tell)
            yield profile
        elif chosen.scaling and profile.predicted is not None:
            skipped.append("other batches")
    if chosen.leak_steps and chosen.left_s() <= 0:
        skipped.append("leaks")
    elif chosen.leak_steps:
        tell(0.6, f"watching {chosen.leak_steps} steps for leaks")
        profile = replace(profile, leak=watch_memory(work, steps=chosen.leak_steps))
        yield profile
    if predict and chosen.left_s() > 0:
        tell(0.8, "weighing what would lower the peak")
        limit_s = min(chosen.weigh_s, chosen.left_s())
        weighed = weigh(profile, work, time_limit_s=limit_s, predicted_s=predicted_s)
        profile = replace(profile, advice=weighed.advice, notes=[*profile.notes, *weighed.notes])
    elif predict:
        skipped.append("changes that would lower the peak")
    if skipped:
        note = f"not looked at, since the budget was spent: {', '.join(skipped)}; allow more with --budget"
        profile = replace(profile, notes=[*profile.notes, note])
    yield profile


def _recorded(work: Workload, steps: int, plain: PlainRun) -> MemoryProfile:
    if runs_compiled(work):
        return _profile_of(record_allocator(work, steps=steps, warm=1), work, plain, 0, COMPILED)
    log = record_steps(work, steps=steps)
    try:
        account = record_allocator(work, steps=steps)
    except PyrometerError as error:
        log.notes.append(f"not cross-checked with the allocator: {error}")
        return _profile_of(log, work, plain, 0, OPERATORS)
    return _profile_of(log, work, plain, max(0, account.peak_bytes - log.peak_bytes), OPERATORS)


def runs_compiled(work: Workload) -> bool:
    """Whether some of a workload's code is behind `torch.compile`."""
    if work.config.mode not in {None, "eager"}:
        return True
    parts: Any = getattr(work, "parts", work)
    model = getattr(parts, "model", None)
    if isinstance(model, nn.Module):
        return any(is_compiled(part) for part in model.modules())
    return hasattr(getattr(work, "function", None), "_torchdynamo_orig_callable")


def _profile_of(
    log: AllocationLog, work: Workload, plain: PlainRun, workspace: Bytes, source: str
) -> MemoryProfile:
    profile = profile_of_log(
        log, name=work.name, device=plain.device, source=source, levels=plain.levels, workspace=workspace
    )
    units, peak = plain.units_per_step, profile.peak_bytes
    return replace(
        profile,
        config=work.config.label,
        unit=work.unit,
        units_per_step=units or None,
        bytes_per_unit=peak / units if units else None,
        units_per_gib=units / (peak / 2**30) if peak else None,
    )


def _with_prediction(profile: MemoryProfile, work: Workload, tell: Progress) -> MemoryProfile:
    """Add the same step predicted; what cannot be is told, since the recording stands without."""
    tell(0.3, "predicting")
    notes: list[str] = []
    predicted = _tried("the step", lambda: predict_memory(work), notes)
    if predicted is not None:
        measured = profile.peak_bytes - profile.ledger_bytes["cache"]
        error = predicted.peak_bytes / measured - 1 if measured else None
        predicted = replace(predicted, error=error)
    told = (
        _tried("the rules of thumb", lambda: formulas(work), notes) if predicted is not None else None
    ) or {}
    return replace(profile, predicted=predicted, formulas=told, notes=[*profile.notes, *notes])


def _with_scaling(
    profile: MemoryProfile, work: Workload, budgets_bytes: list[Bytes] | None, tell: Progress
) -> MemoryProfile:
    tell(0.4, "predicting other batches")
    notes: list[str] = []
    laws = _tried("how it scales", lambda: scaling_laws(work), notes) or []
    tell(0.5, "finding the largest batch")
    fits = _tried("the largest batch", lambda: largest_batch_that_fits(work, budgets_bytes), notes) or []
    return replace(profile, scaling=laws, fits=fits, notes=[*profile.notes, *notes])


def _tried(what: str, find: Callable[[], T], notes: list[str]) -> T | None:
    try:
        return find()
    except PyrometerError as error:
        notes.append(f"{what} could not be predicted: {error}")
        return None


def _silent(_share: float, _what: str) -> None:
    """The progress of someone who does not ask."""
