"""Arguments of DistributedDataParallel: buckets, gradients as their views, a static graph, unused parameters, buffers."""

from __future__ import annotations

import abc
import inspect
from typing import Any, ClassVar

from torch.nn.parallel import DistributedDataParallel

from pyrometer.tuning.levers.lever import Parameters, RankLever, lever
from pyrometer.tuning.levers.rank_subject import RankSubject

NO_DDP = "the script does not use DistributedDataParallel"
_MIB = 1 << 20
_DEFAULT_MB = 25
_OTHER_MB = (100, 50, 5, 1)


class _DdpArgument(RankLever):
    """An argument of DistributedDataParallel in place of the script's; the reducer says whether it is in force."""

    argument: ClassVar[str]

    def refuses(self, subject: RankSubject) -> str | None:
        """The script has to use DistributedDataParallel."""
        return None if subject.ddp else NO_DDP

    @abc.abstractmethod
    def wanted(self, parameters: Parameters) -> Any:
        """What the argument is to be."""

    def apply(self, subject: RankSubject, parameters: Parameters) -> None:
        """Put it in place of the script's."""
        subject.ddp_settings[self.argument] = self.wanted(parameters)

    def not_applied(self, subject: RankSubject, parameters: Parameters) -> str | None:
        """What the reducers run with."""
        found = [_in_force(model)[self.argument] for model in subject.ddp]
        others = [value for value in found if value != self.wanted(parameters)]
        return f"DistributedDataParallel has {self.argument}={others[0]}" if others else None

    def lines(self, parameters: Parameters) -> list[str]:
        """The argument."""
        return [f"# DistributedDataParallel(..., {self.argument}={self.wanted(parameters)})"]


def _in_force(model: DistributedDataParallel) -> dict[str, Any]:
    return {
        "bucket_cap_mb": model.bucket_bytes_cap / _MIB,
        "gradient_as_bucket_view": model.gradient_as_bucket_view,
        "static_graph": model.static_graph,
        "find_unused_parameters": model.find_unused_parameters,
        "forward_sync_buffers": getattr(model, "forward_sync_buffers", True),
    }


@lever
class DdpBuckets(_DdpArgument):
    """Send gradients in larger or smaller buckets."""

    name = "ddp_buckets"
    title = "send gradients in buckets of another size"
    why = (
        "Each bucket is one collective, begun when its last gradient is there. Larger ones pay the latency of the network less often, "
        "smaller ones begin earlier and hide behind more of the backward pass."
    )
    argument = "bucket_cap_mb"
    prior = 0.9

    def choices(self, subject: RankSubject) -> list[Parameters]:
        """Sizes that make other buckets than the script's."""
        now = subject.ddp_given.get(self.argument) or _DEFAULT_MB
        size = subject.trained_bytes / _MIB
        return [{"mb": mb} for mb in _OTHER_MB if mb != now and min(mb, now) < size]

    def wanted(self, parameters: Parameters) -> Any:
        """The size that is tried."""
        return parameters["mb"]


class _DdpSwitch(_DdpArgument):
    """One that is on or off."""

    value: ClassVar[bool]
    default: ClassVar[bool] = False

    def refuses(self, subject: RankSubject) -> str | None:
        """The script has to be without it."""
        now = subject.ddp_given.get(self.argument)
        is_set = subject.ddp and (self.default if now is None else now) == self.value
        return f"{self.argument} is {self.value} already" if is_set else super().refuses(subject)

    def wanted(self, parameters: Parameters) -> Any:
        """Its value."""
        return self.value


@lever
class DdpBucketViews(_DdpSwitch):
    """Let gradients be views of the buckets."""

    name = "ddp_bucket_views"
    title = "let gradients be views of the buckets that are sent"
    why = "Gradients are not copied into buckets and back, and are held once in place of twice. They cannot be detached in place."
    argument, value = "gradient_as_bucket_view", True
    prior = 0.93


class _AllUsed(_DdpSwitch):
    """One that needs each parameter in each step."""

    def refuses(self, subject: RankSubject) -> str | None:
        """All parameters have been used in all steps so far."""
        reason = super().refuses(subject)
        if reason is None and subject.unused:
            return f"{min(subject.unused)} got no gradient in some step"
        return reason


@lever
class DdpStaticGraph(_AllUsed):
    """Promise that the same parameters are used in the same order in each step."""

    name = "ddp_static_graph"
    title = "promise that each step uses the same parameters"
    why = (
        "What is used is looked for once in place of in each step, and buckets are ordered as gradients come. A model that takes "
        "other branches from step to step must not promise that."
    )
    argument, value = "static_graph", True
    prior = 0.97


@lever
class DdpNoUnused(_AllUsed):
    """Do not look for parameters without a gradient."""

    name = "ddp_no_unused"
    title = "do not look for parameters that got no gradient"
    why = (
        "The search walks through the whole graph after each forward pass, and is needed only where a step leaves parameters out. "
        "If one ever does, DistributedDataParallel raises."
    )
    argument, value = "find_unused_parameters", False
    prior = 0.9


@lever
class DdpOwnBuffers(_DdpSwitch):
    """Do not send buffers before each forward pass."""

    name = "ddp_own_buffers"
    title = "do not send buffers before each forward pass"
    why = (
        "Running statistics of batch norm are used in evaluation alone, where those of rank 0 are as before. "
        "Buffers that training reads, and that differ between ranks, must be sent."
    )
    argument, value, default = "forward_sync_buffers", False, True
    prior = 0.95

    def refuses(self, subject: RankSubject) -> str | None:
        """There have to be buffers, and a torch that can leave them alone but for the start."""
        if (reason := super().refuses(subject)) is not None:
            return reason
        if self.argument not in inspect.signature(DistributedDataParallel).parameters:
            return f"this torch has no {self.argument}"
        if subject.ddp_given.get("broadcast_buffers") is False:
            return "broadcast_buffers is False already"
        return None if any(True for _ in subject.whole.buffers()) else "the model has no buffers"
