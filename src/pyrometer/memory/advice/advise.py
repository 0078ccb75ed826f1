"""What to change so that a program needs less memory: every rule, the largest saving first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pyrometer.advice import Advice
from pyrometer.errors import PyrometerError
from pyrometer.memory.advice.case import Case
from pyrometer.memory.advice.rules.checkpointing import checkpointing
from pyrometer.memory.advice.rules.copies import copies, two_dtypes
from pyrometer.memory.advice.rules.gradients import kept_gradients, step_in_backward
from pyrometer.memory.advice.rules.in_place import in_place
from pyrometer.memory.advice.rules.lingering import lingering
from pyrometer.memory.advice.rules.losses import logits_in_chunks, scalar_with_storage
from pyrometer.memory.advice.rules.micro_batches import micro_batches
from pyrometer.memory.advice.rules.offloading import offloading
from pyrometer.memory.advice.rules.optimizers import eight_bits, implementation, less_state
from pyrometer.memory.advice.rules.padding import padding
from pyrometer.memory.advice.rules.preallocation import preallocation
from pyrometer.memory.advice.rules.precision import autocast, low_precision_parameters
from pyrometer.memory.advice.rules.recording import frozen_trunk, no_grad, stale_state, untrained_parameters
from pyrometer.memory.profile import MemoryProfile
from pyrometer.quantity import Seconds
from pyrometer.workload.state import preserved_rng
from pyrometer.workload.workload import Workload

Rule = Callable[[Case], Iterable[Advice]]

RULES: tuple[Rule, ...] = (
    checkpointing,
    micro_batches,
    autocast,
    low_precision_parameters,
    implementation,
    less_state,
    eight_bits,
    step_in_backward,
    kept_gradients,
    untrained_parameters,
    frozen_trunk,
    stale_state,
    no_grad,
    offloading,
    padding,
    in_place,
    preallocation,
    copies,
    two_dtypes,
    scalar_with_storage,
    logits_in_chunks,
    lingering,
)

TIME_LIMIT_S = 15.0


class Weighed(NamedTuple):
    """What helps, and what was considered and does not."""

    advice: list[Advice]
    notes: list[str]


def weigh(
    profile: MemoryProfile,
    work: Workload,
    *,
    time_limit_s: Seconds = TIME_LIMIT_S,
    predicted_s: Seconds = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> Weighed:
    """Say what lowers the peak, and why other changes would not.

    Only what lowers the peak itself is advised: changes are predicted by running the changed program on tensors without
    data, or by replaying the recorded steps with other lifetimes, and what leaves the peak where it is is left out.

    Args:
        profile: of the program, without advice.
        work: the program; its steps are run again, and its state is restored.
        time_limit_s: changes whose trying would likely end later, by the longest before, are left out, with a note.
        predicted_s: how long it took to predict the program as written, where the profile holds that.
        clock: tells the time.

    Returns:
        The largest saving first, then those without a figure.

    >>> import torch, pyrometer as pm
    >>> work = pm.Inference(torch.nn.Linear(256, 256), torch.randn(8, 256))
    >>> [one.slug for one in weigh(pm.profile_memory(work, predict=False), work).advice]
    ['bf16-parameters']
    """
    case = Case(profile, work, time_limit_s, clock, predicted_s)
    with preserved_rng():  # rules look at batches, and loaders draw a seed for each pass
        found = [advice for rule in RULES for advice in _applied(rule, case)]
    ordered = sorted(found, key=lambda advice: -advice.saves_bytes)
    return Weighed(ordered, case.notes)


def _applied(rule: Rule, case: Case) -> list[Advice]:
    """What a rule says; a rule that cannot be tried on this program leaves a note."""
    try:
        return list(rule(case))
    except PyrometerError as error:
        case.notes.append(f"{rule.__name__.replace('_', ' ')} could not be tried: {error}")
        return []
