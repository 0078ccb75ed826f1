"""A plan in force: on a model, or as a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from torch import nn

from pyrometer.errors import UsageError
from pyrometer.quantity import Bytes
from pyrometer.workload.changes.checkpointing import Applied, checkpointed
from pyrometer.workload.changes.policies import Policy
from pyrometer.workload.training import Training, TrainingSession
from pyrometer.workload.workload import Workload

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


class CheckpointedTraining(Workload):
    """A training step with modules behind checkpointing, only while a session is open.

    Args:
        work: the step.
        policies: by module path.
        written: by module path, buffers inside that the forward writes to.
    """

    def __init__(
        self,
        work: Training,
        policies: Mapping[str, Policy],
        written: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.work = work
        self.policies = dict(policies)
        self.written = dict(written or {})
        self.name = f"{work.name}, checkpointed"
        self.unit = work.unit
        self.config = work.config
        self.surroundings = work.surroundings

    def phases(self) -> tuple[str, ...]:
        """Those of the training step."""
        return self.work.phases()

    def snapshot_bytes(self) -> Bytes:
        """As of the training step."""
        return self.work.snapshot_bytes()

    @contextlib.contextmanager
    def open(self) -> Iterator[TrainingSession]:
        """A session of the training step, on a model with checkpointing."""
        with self.work.open() as session, checkpointed(session.model, self.policies, self.written):
            yield session
