"""Communication hooks of DistributedDataParallel: gradients in fewer bits, of lower rank, or only the largest."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from pyrometer.tuning.levers.families.ranks.ddp_settings import NO_DDP
from pyrometer.tuning.levers.families.ranks.power_sgd import in_turn
from pyrometer.tuning.levers.families.ranks.top_k import TopK
from pyrometer.tuning.levers.lever import Parameters, RankLever, lever
from pyrometer.tuning.levers.rank_subject import RankSubject

FIRST_COMPRESSED = 2
"""Steps with whole gradients: in the first one DistributedDataParallel finds its buckets."""


class DdpHook(RankLever):
    """A hook that sends gradients in another form; it counts its calls."""

    excludes = frozenset({"gradient_hook"})
    unseen = "the hook was not called"

    def refuses(self, subject: RankSubject) -> str | None:
        """Gradients have to be float32, and nobody else's hook in their way."""
        if not subject.ddp:
            return NO_DDP
        if any(getattr(model, "_comm_hooks", ()) for model in subject.ddp):
            return "the script has a communication hook of its own"
        if any(parameter.dtype != torch.float32 for parameter in subject.whole.parameters()):
            return "not all gradients are float32"
        return None

    @abc.abstractmethod
    def hook(self, model: DistributedDataParallel, parameters: Parameters) -> tuple[Any, Callable[..., Any]]:
        """State and function."""

    def apply(self, subject: RankSubject, parameters: Parameters) -> None:
        """Register it with each model."""

        def register(model: DistributedDataParallel) -> None:
            state, function = self.hook(model, parameters)

            def counted(state: Any, bucket: Any) -> Any:
                subject.count(self.name)
                return function(state, bucket)

            model.register_comm_hook(state, _annotated(counted))

        subject.on_ddp.append(register)


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """With the types that DistributedDataParallel asks of a hook."""
    distributed: Any = torch.distributed
    function.__annotations__ = {
        "bucket": distributed.GradBucket,
        "return": torch.futures.Future[torch.Tensor],
    }
    return function


@lever
class DdpFp16(DdpHook):
    """Send gradients as float16."""

    name = "ddp_fp16"
    title = "send gradients as float16"
    why = "Half of the bytes. Gradients below 6e-8 vanish and those above 65,504 overflow; where the network is fast, the casts cost more than they save."
    fix_class = "tolerance"
    prior = 0.85
    pasted = ("model.register_comm_hook(None, default_hooks.fp16_compress_hook)",)

    def hook(self, model: DistributedDataParallel, parameters: Parameters) -> tuple[Any, Callable[..., Any]]:
        """Of torch."""
        return model.process_group, default_hooks.fp16_compress_hook


@lever
class DdpBf16(DdpHook):
    """Send gradients as bfloat16."""

    name = "ddp_bf16"
    title = "send gradients as bfloat16"
    why = "Half of the bytes, with the range of float32 and three digits."
    fix_class = "tolerance"
    prior = 0.85
    pasted = ("model.register_comm_hook(None, default_hooks.bf16_compress_hook)",)

    def refuses(self, subject: RankSubject) -> str | None:
        """Of the backends NCCL and XCCL alone."""
        reason = super().refuses(subject)
        if reason is None and subject.backend not in {"nccl", "xccl"}:
            return f"needs NCCL or XCCL, and the script uses {subject.backend}"
        return reason

    def hook(self, model: DistributedDataParallel, parameters: Parameters) -> tuple[Any, Callable[..., Any]]:
        """Of torch."""
        return model.process_group, default_hooks.bf16_compress_hook


@lever
class DdpPowerSgd(DdpHook):
    """Send gradients of matrices as products of two thin ones."""

    name = "ddp_power_sgd"
    title = "send gradients of matrices as two thin ones (PowerSGD)"
    why = (
        "A matrix of n × m takes r (n + m) numbers, and what is lost is sent later. Two rounds of products and collectives "
        "in place of one: it pays on slow networks. Vogels et al. (2019)."
    )
    fix_class = "semantic"
    prior = 0.8

    def refuses(self, subject: RankSubject) -> str | None:
        """There have to be matrices."""
        reason = super().refuses(subject)
        if reason is None and all(p.dim() < 2 for p in subject.whole.parameters()):
            return "the model has no matrices"
        return reason

    def choices(self, subject: RankSubject) -> list[Parameters]:
        """Rank 4, then 1."""
        in_turn = {"in_turn": True} if subject.backend == "gloo" else {}
        return [{"rank": 4, **in_turn}, {"rank": 1, **in_turn}]

    def hook(self, model: DistributedDataParallel, parameters: Parameters) -> tuple[Any, Callable[..., Any]]:
        """Of torch, from the step on that it allows first."""
        state = powerSGD_hook.PowerSGDState(
            model.process_group, parameters["rank"], start_powerSGD_iter=FIRST_COMPRESSED
        )
        return state, in_turn if parameters.get("in_turn") else powerSGD_hook.powerSGD_hook

    def lines(self, parameters: Parameters) -> list[str]:
        """The call."""
        ours = ["from pyrometer.tuning.levers.families.ranks.power_sgd import in_turn"]
        return [
            *(ours if parameters.get("in_turn") else []),
            f"state = PowerSGDState(None, matrix_approximation_rank={parameters['rank']}, start_powerSGD_iter={FIRST_COMPRESSED})",
            f"model.register_comm_hook(state, {'in_turn' if parameters.get('in_turn') else 'powerSGD_hook'})",
        ]


@lever
class DdpTopK(DdpHook):
    """Send only the largest gradients, and the others later."""

    name = "ddp_top_k"
    title = "send only the largest gradients, and the others later"
    why = (
        "What is not sent is added to the gradients of the next step (error feedback), so that it is late, not lost. Finding the "
        "largest takes time: it pays on slow networks. Lin et al. (2018)."
    )
    fix_class = "semantic"
    prior = 0.8
    pasted = (
        "from pyrometer.tuning.levers.families.ranks.top_k import TopK",
        "model.register_comm_hook(TopK(None, $share), TopK.hook)",
    )

    def choices(self, subject: RankSubject) -> list[Parameters]:
        """One in ten, then one in a hundred."""
        return [{"share": 0.1}, {"share": 0.01}]

    def hook(self, model: DistributedDataParallel, parameters: Parameters) -> tuple[Any, Callable[..., Any]]:
        """Ours."""
        return TopK(model.process_group, parameters["share"], FIRST_COMPRESSED), TopK.hook
