"""`checkpointing`: activations that are computed again in the backward pass, as a plan says."""

from __future__ import annotations

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.tuning.checkpointing.applying import CheckpointedTraining
from pyrometer.tuning.checkpointing.plan import plan_checkpoints
from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.changes.checkpointing import CheckpointedForward

PLANNING_S: Seconds = 8.0


@lever
class Checkpointing(Lever):
    """Compute activations of some modules again in the backward pass."""

    name = "checkpointing"
    title = "compute activations again in the backward pass"
    why = (
        "What a module keeps for the backward pass is freed and made anew: less memory at the peak, for about a third more time where "
        "all of it is. Which modules pay most is planned from their measured bytes and times."
    )
    stage = "memory"
    place = "settings"
    kinds = frozenset({"training"})
    executors = frozenset({"eager"})
    for_memory = True
    prior = 1.2

    def refuses(self, subject: Subject) -> str | None:
        """Modules are what is computed again."""
        if any(
            isinstance(vars(module).get("forward"), CheckpointedForward) for module in subject.model.modules()
        ):
            return "the model is behind checkpointing already"
        if any(True for _ in subject.model.children()):
            return None
        return "the model has no modules to compute again"

    def choices(self, subject: Subject) -> list[Parameters]:
        """From the plan: what saves half of what can be saved, then all of it."""
        try:
            plan = plan_checkpoints(subject.training, budget_s=PLANNING_S)
        except InputError:
            return []  # nothing in the model can be computed again
        most = plan.baseline.peak_bytes - plan.planned.peak_bytes
        half = [
            point
            for point in plan.frontier
            if point.modules and point.peak_bytes <= plan.baseline.peak_bytes - most / 2
        ]
        plans = [dict(point.policies) for point in sorted(half, key=lambda point: point.recompute_s)[:1]]
        plans += [dict(plan.policy)] if plan.modules and dict(plan.policy) not in plans else []
        return [
            {
                "modules": policies,
                "written": {path: plan.written[path] for path in policies if path in plan.written},
            }
            for policies in plans
        ]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """For sessions of the workload; the modules themselves stay as they are."""
        subject.work = CheckpointedTraining(
            subject.training, parameters["modules"], parameters.get("written")
        )

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Each of the modules was computed again in the first step."""
        work = subject.training
        if not isinstance(work, CheckpointedTraining):
            return "no module is behind checkpointing"
        idle = [path for path in parameters["modules"] if path not in work.behind]
        return f"{idle[0]} is not behind checkpointing" if idle else None

    def lines(self, parameters: Parameters) -> list[str]:
        """Where to put the call."""
        paths = ", ".join(parameters["modules"])
        return [
            f"# in the forward passes that call {paths}:",
            "# torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False)",
        ]
