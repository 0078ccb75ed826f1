"""What levers of many ranks change: how a script spreads its model over ranks; and what was seen of that while it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pyrometer.quantity import Bytes


@dataclass
class RankSubject:
    """The script of one rank. Levers fill the plan before it starts, and ask afterwards what was seen.

    Attributes:
        ddp_settings: arguments that each DistributedDataParallel gets in place of the script's.
        shard_settings: arguments that each `fully_shard` gets in place of the script's.
        group_shards: how many blocks in a row are sharded as one; 0 for all.
        shard_blocks: whether the repeated parts of a model are sharded one by one where the script shards only the whole.
        on_ddp: called with each DistributedDataParallel that was made.
        on_shards: called with all sharded modules once the first whole model was used, in the order of the script's calls.
        before_update: called before each update, when all gradients are there.
        ddp: the script's models in DistributedDataParallel.
        ddp_given: arguments that the script gave the first of them.
        shards: modules that the script sharded, in order, each once.
        shards_given: arguments that it gave the last of them.
        backwards: backward passes before each of the first updates.
        pending: backward passes since the last update.
        synced: of the first forward passes in training, whether their gradients were to be sent.
        unused: names of parameters that got no gradient in some backward pass; only looked for where DDP looks for them.
        micro_batch: samples of a forward pass of one rank.
        counts: how often hooks of levers were called.
    """

    ddp_settings: dict[str, Any] = field(default_factory=dict)
    shard_settings: dict[str, Any] = field(default_factory=dict)
    group_shards: int | None = None
    shard_blocks: bool = False
    on_ddp: list[Callable[[DistributedDataParallel], None]] = field(default_factory=list)
    on_shards: list[Callable[[list[nn.Module]], None]] = field(default_factory=list)
    before_update: list[Callable[[], None]] = field(default_factory=list)
    ddp: list[DistributedDataParallel] = field(default_factory=list)
    ddp_given: dict[str, Any] = field(default_factory=dict)
    shards: list[nn.Module] = field(default_factory=list)
    shards_given: dict[str, Any] = field(default_factory=dict)
    backwards: list[int] = field(default_factory=list)
    pending: int = 0
    synced: list[bool] = field(default_factory=list)
    unused: set[str] = field(default_factory=set)
    micro_batch: int | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> nn.Module:
        """The first model of the script, without its wrapper."""
        module: nn.Module = self.ddp[0].module if self.ddp else self.shards[-1]
        return module

    @property
    def device(self) -> torch.device:
        """Of the model."""
        return next((parameter.device for parameter in self.whole.parameters()), torch.device("cpu"))

    @property
    def trained_bytes(self) -> Bytes:
        """Of all gradients of the model, on one rank without sharding."""
        return sum(parameter.nbytes for parameter in self.whole.parameters() if parameter.requires_grad)

    @property
    def accumulation(self) -> int:
        """Backward passes per update, where it is always the same; else 0."""
        return self.backwards[0] if len(set(self.backwards)) == 1 else 0

    @property
    def backend(self) -> str:
        """That the gradients travel by."""
        group = self.ddp[0].process_group if self.ddp else None
        return dist.get_backend(group)

    def count(self, what: str) -> None:
        """A hook of a lever was called."""
        self.counts[what] = self.counts.get(what, 0) + 1


def wholes(shards: Iterable[nn.Module]) -> list[nn.Module]:
    """Of sharded modules those that are in no other."""
    listed = list(shards)
    inside = {id(part) for module in listed for part in module.modules() if part is not module}
    return [module for module in listed if id(module) not in inside]
