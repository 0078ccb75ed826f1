"""`ddp_no_sync`: gradients that are sent once per update where the script accumulates."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from pyrometer.tuning.levers.families.ranks.ddp_settings import NO_DDP
from pyrometer.tuning.levers.lever import Parameters, RankLever, lever
from pyrometer.tuning.levers.rank_subject import RankSubject


@lever
class DdpNoSync(RankLever):
    """Send gradients once per update."""

    name = "ddp_no_sync"
    title = "send gradients once per update where the script accumulates"
    why = (
        "Without `no_sync` each backward pass sends all gradients, though only their sum is used. The scheduler is the script's: "
        "it is to be stepped once per update, too."
    )
    prior = 0.7
    pasted = (
        "# around forward and backward, where `number` counts passes from 1; optimizer.step() and scheduler.step() come after the last:",
        "# with contextlib.nullcontext() if number % $passes == 0 else model.no_sync():",
    )
    unseen = "all backward passes sent their gradients"

    def refuses(self, subject: RankSubject) -> str | None:
        """The script has to accumulate, always as often, and to send each time."""
        if not subject.ddp:
            return NO_DDP
        if len(subject.ddp) > 1:
            return "the script has several models, whose backward passes cannot be told apart"
        if not subject.accumulation:
            return "the number of backward passes per update varies"
        if subject.accumulation == 1:
            return "the script does not accumulate"
        return None if all(subject.synced) else "the script uses no_sync itself"

    def choices(self, subject: RankSubject) -> list[Parameters]:
        """As many passes as the script has."""
        return [{"passes": subject.accumulation}]

    def apply(self, subject: RankSubject, parameters: Parameters) -> None:
        """Send in the last pass; what an update would find unsent is sent before it."""
        subject.on_ddp.append(lambda model: _attach(subject, model, parameters["passes"]))


def _attach(subject: RankSubject, model: DistributedDataParallel, passes: int) -> None:
    def before_forward(module: DistributedDataParallel, _: Any) -> None:
        if module.training and torch.is_grad_enabled():
            module.require_backward_grad_sync = subject.pending >= passes - 1
            subject.counts[DdpNoSync.name] = subject.counts.get(DdpNoSync.name, 0) + (
                not module.require_backward_grad_sync
            )

    def before_update() -> None:
        if model.require_backward_grad_sync or not subject.pending:
            return
        # Fewer passes than usual, as at the end of an epoch: nothing has been sent yet.
        ranks = dist.get_world_size(model.process_group)
        for parameter in model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad.div_(ranks), group=model.process_group)

    model.register_forward_pre_hook(before_forward)
    subject.before_update.append(before_update)
