"""Planning which modules to compute again: measure, choose, run the choice, and say what it brings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

from pyrometer.bench.clock import Clock
from pyrometer.errors import InputError
from pyrometer.loading.figures import require_positive
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.settings import parse_bytes
from pyrometer.tuning.checkpointing.choosing import Strategy, Wish
from pyrometer.tuning.checkpointing.compiled import plan_compiled, runs_compiled
from pyrometer.tuning.checkpointing.planner import Planner
from pyrometer.tuning.checkpointing.record import CheckpointPlan
from pyrometer.workload.changes.policies import POLICIES, Policy
from pyrometer.workload.training import Training

DEFAULT_BUDGET_S = 60.0


def plan_checkpoints(
    work: Training,
    *,
    budget: Bytes | str | None = None,
    max_slowdown: Ratio | None = None,
    strategy: Strategy = "optimal",
    granularity: str | Sequence[str] = "auto",
    policies: Sequence[Policy] = POLICIES,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    seed: int = 0,
    clock: Clock | None = None,
) -> CheckpointPlan:
    """Choose modules whose activations are computed again in the backward pass, so that a step fits into memory.

    The bytes that each module keeps and the time that each recomputation takes are measured; the choice is optimal under an
    exact model of the bytes over time, and is then run: peak, paired time, and equality of gradients are measured. For models
    under `torch.compile` torch's `activation_memory_budget` is searched instead, by measured peaks.

    Args:
        work: the training step; it is as before afterwards.
        budget: the most bytes of tensors that may be alive at one instant, a number or a text such as `2GiB`; without it
            the least peak is planned.
        max_slowdown: longest planned step, in steps as written, such as 1.2.
        strategy: `optimal`; `every-k` (the best of every k-th block); `adaptive` (the first blocks of the order in which
            `AdaptiveCheckpoint` switches them on, as many as the budget needs).
        granularity: `auto`, `blocks`, `all`, or paths of the modules that may be chosen.
        policies: what may be kept inside of recomputed modules; `("full",)` for plain checkpointing.
        budget_s: about the time for measuring.
        seed: of the comparisons.
        clock: by default the right one for the device.

    Raises:
        InputError: an argument that cannot be used, or nothing in the model can be computed again.
        UserProgramError: a step raised.
    """
    if not isinstance(work, Training):
        raise InputError(
            f"work: got {type(work).__name__}; checkpointing is for training, give pm.Training(…)"
        )
    _require_choice("strategy", strategy, get_args(Strategy))
    for policy in policies:
        _require_choice("policies", policy, POLICIES)
    if not policies:
        raise InputError(f"policies: got none; legal are {', '.join(POLICIES)}")
    require_positive("budget_s", budget_s, f"{DEFAULT_BUDGET_S:g}")
    wish = Wish(_budget_bytes(budget), _slowdown(max_slowdown), strategy)
    if runs_compiled(work):
        return plan_compiled(work, wish, budget_s=budget_s, seed=seed)
    planner = Planner(work, wish, budget_s=budget_s, seed=seed, clock=clock)
    planner.measure(granularity, policies)
    return planner.plan()


def _budget_bytes(budget: Bytes | str | None) -> Bytes | None:
    value = parse_bytes(budget) if isinstance(budget, str) else budget
    if value is not None and value < 1:
        raise InputError(f"budget: got {budget!r}; it must be a number of bytes or a size such as '2GiB'")
    return value


def _slowdown(ratio: Ratio | None) -> Ratio | None:
    if ratio is not None and not 1 <= ratio < math.inf:
        raise InputError(
            f"max_slowdown: got {ratio!r}; it must be at least 1, such as 1.2 for 20 % longer steps"
        )
    return ratio


def _require_choice(name: str, value: str, legal: Sequence[str]) -> None:
    if value not in legal:
        raise InputError(f"{name}: got {value!r}; legal are {', '.join(legal)}")
