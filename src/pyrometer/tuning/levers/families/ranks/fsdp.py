"""Levers of FSDP2: what is gathered again, in which groups, in which precision, and how early."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy

from pyrometer.tuning.levers.lever import Parameters, RankLever, lever
from pyrometer.tuning.levers.rank_subject import RankSubject, wholes
from pyrometer.workload.program.repeated import blocks

NO_FSDP = "the script does not use fully_shard"


class _FsdpLever(RankLever):
    """What every lever of FSDP2 needs."""

    def refuses(self, subject: RankSubject) -> str | None:
        """The script has to use `fully_shard`."""
        return self.refuses_fsdp(subject) if subject.shards else NO_FSDP

    def refuses_fsdp(self, subject: RankSubject) -> str | None:
        """Why the script has no use for it."""
        return None


def _inner(subject: RankSubject) -> list[nn.Module]:
    """Sharded modules that are in another."""
    outer = {id(module) for module in wholes(subject.shards)}
    return [module for module in subject.shards if id(module) not in outer]


@lever
class FsdpKeepGathered(_FsdpLever):
    """Keep parameters gathered from the forward to the backward pass."""

    name = "fsdp_keep_gathered"
    title = "keep parameters gathered until the backward pass"
    why = "Each block is gathered once per step in place of twice, for the memory of all parameters in full."
    prior = 0.8
    pasted = ("# fully_shard(block, reshard_after_forward=False)",)
    unseen = "blocks are sharded again after the forward pass"

    def refuses_fsdp(self, subject: RankSubject) -> str | None:
        """Blocks are gathered twice only where they are in another sharded module."""
        if subject.shards_given.get("reshard_after_forward") is False:
            return "reshard_after_forward is False already"
        return (
            None if _inner(subject) else "only the whole model is sharded, which is kept gathered by default"
        )

    def apply(self, subject: RankSubject, parameters: Parameters) -> None:
        """Put it in place of the script's."""
        subject.shard_settings["reshard_after_forward"] = False
        subject.on_shards.append(lambda shards: _note_gathered(subject, shards))


def _note_gathered(subject: RankSubject, shards: list[nn.Module]) -> None:
    """See after the first forward pass of a block whether its parameters are whole."""

    def after(module: nn.Module, *_: Any) -> None:
        if not any(hasattr(parameter, "to_local") for parameter in module.parameters()):
            subject.count(FsdpKeepGathered.name)
        handle.remove()

    handle = shards[0].register_forward_hook(after)


@lever
class FsdpWrapping(_FsdpLever):
    """Shard in larger or smaller groups."""

    name = "fsdp_wrapping"
    title = "shard blocks one by one, or several as one"
    why = (
        "One group for the whole model is gathered before anything is computed; one for each block overlaps with the block before. "
        "Many small groups pay the latency of the network more often, and several as one less often."
    )
    prior = 0.9

    def refuses_fsdp(self, subject: RankSubject) -> str | None:
        """There have to be blocks."""
        return None if self.choices(subject) else "there are no repeated blocks to be grouped in another way"

    def choices(self, subject: RankSubject) -> list[Parameters]:
        """Each block where the script shards the whole; else two, four, or all as one."""
        inner = _inner(subject)
        if not inner:
            return [{"together": 1}] if blocks(subject.whole) else []
        fewer = [number for number in (2, 4) if number < len(inner)]
        return [{"together": number} for number in [*fewer, 0] if number or len(inner) > 1]

    def apply(self, subject: RankSubject, parameters: Parameters) -> None:
        """Say so to what stands before `fully_shard`."""
        together = parameters["together"]
        subject.shard_blocks = together == 1
        subject.group_shards = None if together == 1 else together

    def not_applied(self, subject: RankSubject, parameters: Parameters) -> str | None:
        """All sharded modules are."""
        if parameters["together"] == 1 and not _inner(subject):
            return "the blocks are not sharded one by one"
        plain = [module for module in subject.shards if not isinstance(module, FSDPModule)]
        return f"{type(plain[0]).__name__} is not sharded" if plain else None

    def lines(self, parameters: Parameters) -> list[str]:
        """The calls."""
        together = parameters["together"]
        group = {0: "[*blocks]", 1: "block"}.get(together, f"[block, … {together} of them]")
        return [f"# fully_shard({group}) for all blocks, then fully_shard(model)"]


@lever
class FsdpBfloat16(_FsdpLever):
    """Gather and compute in bfloat16, and average gradients in float32."""

    name = "fsdp_bf16"
    title = "gather and compute in bfloat16, update in float32"
    why = "Half of the bytes to gather, and fast products where the processor has them; sharded parameters and their update stay float32."
    place = "precision"
    fix_class = "tolerance"
    prior = 0.7
    pasted = (
        "policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)",
        "# fully_shard(block, mp_policy=policy)",
    )
    unseen = "blocks do not compute in bfloat16"

    def refuses_fsdp(self, subject: RankSubject) -> str | None:
        """The script must not have a policy of its own."""
        policy = subject.shards_given.get("mp_policy")
        if policy is not None and policy.param_dtype is not None:
            return f"the script computes in {policy.param_dtype} already"
        return None

    def apply(self, subject: RankSubject, parameters: Parameters) -> None:
        """The policy, in place of the script's."""
        subject.shard_settings["mp_policy"] = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32
        )
        subject.on_shards.append(lambda shards: _note_dtype(subject, shards))


def _note_dtype(subject: RankSubject, shards: list[nn.Module]) -> None:
    """See while a block runs what its parameters are; a hook is called after they were gathered."""

    def before(module: nn.Module, *_: Any) -> None:
        if any(parameter.dtype == torch.bfloat16 for parameter in module.parameters()):
            subject.count(FsdpBfloat16.name)
        handle.remove()

    handle = shards[0].register_forward_pre_hook(before)


@lever
class FsdpPrefetch(_FsdpLever):
    """Gather blocks earlier than one ahead."""

    name = "fsdp_prefetch"
    title = "gather the parameters of several blocks ahead"
    why = (
        "By default the next block is gathered when the one before has been launched. Earlier gathers hide behind more work where "
        "launching is slow, for the memory of the blocks ahead."
    )
    prior = 0.95
    unseen = "no block gathers others ahead"

    def refuses_fsdp(self, subject: RankSubject) -> str | None:
        """It takes streams, and blocks."""
        if subject.device.type == "cpu":
            return "the script is on the CPU: there is no stream to gather on"
        return None if len(_inner(subject)) > 1 else "there are no blocks to gather ahead"

    def choices(self, subject: RankSubject) -> list[Parameters]:
        """One ahead, then two."""
        return [{"ahead": 1}, {"ahead": 2}]

    def apply(self, subject: RankSubject, parameters: Parameters) -> None:
        """Once all is sharded."""
        subject.on_shards.append(lambda _: _prefetch(subject, parameters["ahead"]))

    def lines(self, parameters: Parameters) -> list[str]:
        """The call."""
        return [
            "for number, block in enumerate(blocks):",
            f"    block.set_modules_to_forward_prefetch(blocks[number + 1 : number + {1 + parameters['ahead']}])",
        ]


def _prefetch(subject: RankSubject, ahead: int) -> None:
    inner: list[Any] = [module for module in _inner(subject) if isinstance(module, FSDPModule)]
    for number, block in enumerate(inner):
        if following := inner[number + 1 : number + 1 + ahead]:
            block.set_modules_to_forward_prefetch(following)
            subject.count(FsdpPrefetch.name)
