"""A plan in force: on a model, or as a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from torch import nn

from pyrometer.errors import UsageError
from pyrometer.workload.changes.checkpointing import Applied, checkpointed
from pyrometer.workload.changes.policies import Policy
from pyrometer.workload.training import Training, TrainingSession

if TYPE_CHECKING:
    from pyrometer.tuning.checkpointing.record import CheckpointPlan


def apply_plan(plan: CheckpointPlan, model: nn.Module) -> Applied:
    """See `CheckpointPlan.apply`."""
    if plan.activation_budget is not None:
        raise UsageError(
            "plan: it is for a compiled model and wraps no modules; set torch._functorch.config."
            f"activation_memory_budget = {plan.activation_budget:g} before the model is compiled"
        )
    policies = {module: cast("Policy", plan.policy[module]) for module in plan.modules}
    return checkpointed(model, policies, plan.written, preserve_rng=plan.preserve_rng)


class CheckpointedTraining(Training):
    """A training step whose sessions run with modules behind checkpointing.

    Attributes:
        behind: paths of the modules that the session opened last ran so.
    """

    def __init__(
        self,
        work: Training,
        policies: Mapping[str, Policy],
        written: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        vars(self).update(vars(work))
        self.name = f"{work.name}, checkpointed"
        self.policies = dict(policies)
        self.written = dict(written or {})
        self.behind: list[str] = []

    @contextlib.contextmanager
    def open(self) -> Iterator[TrainingSession]:
        """A session of the training step, on a model with checkpointing."""
        with super().open() as session, checkpointed(session.model, self.policies, self.written):
            self.behind[:] = self.policies
            yield session
