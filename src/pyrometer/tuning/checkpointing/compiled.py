"""Planning for compiled models: torch's activation memory budget, searched by the peak that it really brings.

The budget is a share of the bytes that the compiler would keep between the passes, not a limit of the peak, and a smaller share
may even raise the peak. So shares are tried, each with everything compiled anew, and the peak of a step is measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from msgspec.structs import replace
from torch import nn

from pyrometer.bench.clock import clock_for
from pyrometer.errors import InputError
from pyrometer.memory.private.allocation_events import allocator_events
from pyrometer.quantity import Bytes, Seconds, format_percent
from pyrometer.tuning.checkpointing.choosing import Wish, best_of
from pyrometer.tuning.checkpointing.private import (
    activation_budget,
    current_activation_budget,
    forget_compiled,
)
from pyrometer.tuning.checkpointing.record import CheckpointPlan, GradientMatch, PlanPoint, StepFigures
from pyrometer.tuning.checkpointing.sentence import plan_sentence
from pyrometer.tuning.checkpointing.solve import Choice, non_dominated
from pyrometer.tuning.checkpointing.verify import match_results
from pyrometer.workload.changes.results import Tensors, results_of
from pyrometer.workload.failure import user_code
from pyrometer.workload.state import tensor_bytes
from pyrometer.workload.training import Training, TrainingSession
from pyrometer.workload.variant import is_compiled

SHARES = (1.0, 0.5, 0.0, 0.75, 0.25, 0.9, 0.1)
"""Coarse ones first: as many are tried as there is time for."""

MIN_SHARES = 3
STEPS = 9
WARM_STEPS = 2


def runs_compiled(work: Training) -> bool:
    """Whether the model runs compiled as a whole, by itself or by the variant."""
    mode = work.config.mode
    return is_compiled(work.parts.model) if mode is None else mode != "eager"


def plan_compiled(work: Training, wish: Wish, *, budget_s: Seconds, seed: int = 0) -> CheckpointPlan:
    """Choose `activation_memory_budget`; see `plan_checkpoints`.

    Raises:
        InputError: another strategy, or this torch has no such setting.
    """
    begun = current_activation_budget()
    if begun is None:
        raise InputError(
            "checkpointing: this torch lacks activation_memory_budget: nothing can be planned for compiled models; "
            "plan for the model without torch.compile"
        )
    if wish.strategy != "optimal":
        raise InputError(
            f"strategy: got {wish.strategy!r}; for compiled models the compiler decides what to compute again; "
            "use optimal, or the model without torch.compile"
        )
    shares = [begun, *(share for share in SHARES if share != begun)]
    clock = clock_for(torch.device("cpu"))
    deadline_ns = clock.host_ns() + int(budget_s * 1e9)
    tried: dict[float, CompiledFigures] = {}
    for share in shares:
        if len(tried) >= MIN_SHARES and clock.host_ns() >= deadline_ns:
            break
        tried[share] = compiled_figures(work, share, seed)
    return _plan(work, wish, tried, begun, seed)


class CompiledFigures:
    """Peak, times and results of a step that was compiled with one share."""

    def __init__(self, peak_bytes: Bytes, times_s: list[Seconds], results: Tensors) -> None:
        self.peak_bytes = peak_bytes
        self.results = results
        self.step_s = float(np.median(times_s))
        low, high = np.quantile(times_s, [0.25, 0.75])
        self.interval = [float(low), float(high)]


def compiled_figures(work: Training, share: float, seed: int = 0) -> CompiledFigures:
    """Compile a training step anew with a share; measure its peak and times, and keep its gradients.

    Raises:
        UserProgramError: a step raised.
    """
    with _compiled_anew(work.parts.model, share):
        results = results_of(work, seed)
        with work.open() as session:
            session.activate()
            with user_code("the step"):
                for _ in range(WARM_STEPS):
                    session.prepare()
                    session.step()
                peak = _profiled_peak(session)
                return CompiledFigures(peak, _timed(session), results)


@contextlib.contextmanager
def _compiled_anew(model: nn.Module, share: float) -> Iterator[None]:
    """Nothing of a model that is compiled inside is used outside, where the share is another."""
    forget_compiled(model)
    try:
        with activation_budget(share):
            yield
    finally:
        forget_compiled(model)


def _timed(session: TrainingSession) -> list[Seconds]:
    clock = clock_for(session.device)
    marks = []
    for _ in range(STEPS):
        session.prepare()
        begin = clock.mark()
        session.step()
        marks.append((begin, clock.mark()))
    clock.synchronize()
    return [clock.between(begin, end) for begin, end in marks]


def _profiled_peak(session: TrainingSession) -> Bytes:
    """Bytes of what is there, and the most that the allocator gave out on top in one step.

    Compiled code is closed to dispatch modes; the profiler sees its allocations all the same.
    """
    present = tensor_bytes(session.parts.tensors())

    def run() -> None:
        session.prepare()
        session.step()

    events = allocator_events(run)
    levels = np.cumsum([event.nbytes for event in events if event.device == session.device.type])
    return present + int(levels.max(initial=0))


def _plan(
    work: Training, wish: Wish, tried: dict[float, CompiledFigures], begun: float, seed: int
) -> CheckpointPlan:
    baseline = tried[begun]
    with _compiled_anew(work.parts.model, begun):
        second = results_of(work, seed)
    matches = {
        share: match_results(baseline.results, second, figures.results) for share, figures in tried.items()
    }
    right = {share: figures for share, figures in tried.items() if matches[share].equal or share == begun}
    listed = list(right)
    choices = [
        Choice((place,), tried[share].peak_bytes, tried[share].step_s) for place, share in enumerate(listed)
    ]
    budget = wish.budget_bytes
    if budget is not None and baseline.peak_bytes <= budget:
        share = begun
    else:
        limit_s = baseline.step_s + wish.limit_s(baseline.step_s)
        share = listed[best_of(choices, budget, limit_s).options[0]]
    planned = tried[share]
    plan = CheckpointPlan(
        name=work.name,
        strategy="activation-budget",
        sentence="",
        modules=[],
        budget_bytes=budget,
        max_slowdown=wish.max_slowdown,
        fits=None if budget is None else planned.peak_bytes <= budget,
        least_peak_bytes=min(figures.peak_bytes for figures in right.values()),
        baseline=_step_figures(baseline),
        planned=_step_figures(planned),
        recompute_s=max(planned.step_s - baseline.step_s, 0.0),
        proven=False,
        equal=matches[share],
        frontier=[
            _point(baseline, tried[listed[choice.options[0]]], listed[choice.options[0]])
            for choice in non_dominated(choices)
        ],
        activation_budget=share,
        notes=[
            "shares of the compiler's activation_memory_budget that were tried: "
            + ", ".join(f"{share:g}" for share in tried),
            "step times of compiled variants are medians of steps in a row with quartiles, not paired",
            *_refusals(matches, right),
        ],
    )
    return replace(plan, sentence=plan_sentence(plan))


def _refusals(matches: dict[float, GradientMatch], right: dict[float, CompiledFigures]) -> list[str]:
    """Shares that must not be used: torch has recomputed dropout with other random numbers than the forward pass drew."""
    return [
        f"activation_memory_budget {share:g} is refused: gradients differ from those as written by "
        f"{format_percent(match.max_error, 2)} ({match.worst})"
        for share, match in matches.items()
        if share not in right
    ]


def _step_figures(figures: CompiledFigures) -> StepFigures:
    return StepFigures(peak_bytes=figures.peak_bytes, step_s=figures.step_s, step_s_ci=figures.interval)


def _point(baseline: CompiledFigures, figures: CompiledFigures, share: float) -> PlanPoint:
    return PlanPoint(
        modules=[],
        policies={"activation_memory_budget": f"{share:g}"},
        peak_bytes=figures.peak_bytes,
        recompute_s=max(figures.step_s - baseline.step_s, 0.0),
        step_s=figures.step_s,
    )
