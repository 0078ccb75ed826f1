"""What a script does with its model on many ranks: seen, and changed as levers say, without a line of its own changed."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.distributed import fsdp
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from pyrometer.errors import InputError
from pyrometer.tuning.levers.rank_subject import RankSubject
from pyrometer.tuning.trials.results import TRAINING_STEPS, Learning, kept_gradients
from pyrometer.workload.inputs import Arguments, leading_dimension
from pyrometer.workload.program.repeated import blocks

_ANY_MODEL = "no model is in DistributedDataParallel or was given to fully_shard by the first update; wrap it, or leave out --nproc"
_FIRST_FORWARDS = 64


class Watch(contextlib.ExitStack):
    """Lays a subject's plan around the script, and notes what is seen, as a context; afterwards torch is as before.

    The steps of a script are the updates of the optimizer that makes the first one.

    Attributes:
        losses: of the first steps, of each of their backward passes; on the device.
        gradients: that the first update was made with, this rank's part of them.
        num_steps: that were made.
    """

    def __init__(self, subject: RankSubject, updated: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.subject = subject
        self.losses: list[list[torch.Tensor]] = [[]]
        self.gradients: list[torch.Tensor | None] = []
        self.num_steps = 0
        self._updated = updated
        self._stepping: torch.optim.Optimizer | None = None
        self._held: list[tuple[nn.Module, dict[str, Any]]] = []
        self._fired: set[str] = set()

    def __enter__(self) -> Watch:  # noqa: PYI034 - typing.Self would be of ExitStack
        replaced = self.enter_context
        replaced(
            patch.object(DistributedDataParallel, "__init__", self._ddp(DistributedDataParallel.__init__))
        )
        shard = self._sharding(fsdp.fully_shard)
        for module in (fsdp, sys.modules["torch.distributed.fsdp._fully_shard"]):
            replaced(patch.object(module, "fully_shard", shard))
        replaced(patch.object(torch.autograd, "backward", self._backward(torch.autograd.backward)))
        self.callback(register_optimizer_step_pre_hook(self._before).remove)
        self.callback(register_optimizer_step_post_hook(self._after).remove)
        return self

    def learned(self) -> Learning:
        """Losses of the first steps and gradients of the first.

        Raises:
            InputError: a step has no loss.
        """
        if not all(self.losses[: min(self.num_steps, TRAINING_STEPS)]):
            raise InputError(
                "a step without loss.backward(): tune holds losses against those of the script as it is"
            )
        means = [float(torch.stack(step).mean()) for step in self.losses[:TRAINING_STEPS] if step]
        return Learning(means, self.gradients)

    def _ddp(self, init: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(init)

        @functools.wraps(init)
        def changed(model: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
            given = dict(signature.bind(model, *args, **kwargs).arguments)
            given.pop("self")
            init(model, **given | self.subject.ddp_settings)
            self._wrapped(model, given)

        return changed

    def _wrapped(self, model: DistributedDataParallel, given: dict[str, Any]) -> None:
        subject = self.subject
        subject.ddp_given = subject.ddp_given or {
            name: value for name, value in given.items() if name != "module"
        }
        subject.ddp.append(model)
        model.register_forward_pre_hook(self._forward, with_kwargs=True)
        if given.get("find_unused_parameters"):
            for name, parameter in model.module.named_parameters():
                if parameter.requires_grad:
                    parameter.register_post_accumulate_grad_hook(lambda _, name=name: self._fired.add(name))
        for change in subject.on_ddp:
            change(model)

    def _sharding(self, fully_shard: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fully_shard)
        def changed(module: Any, **kwargs: Any) -> Any:
            self._shard(fully_shard, module, kwargs)
            return module

        return changed

    def _shard(self, fully_shard: Callable[..., Any], module: Any, given: dict[str, Any]) -> None:
        subject = self.subject
        settings = given | subject.shard_settings
        listed = list(module) if isinstance(module, list) else [module]
        subject.shards_given = given
        is_whole = self._holds_shards(listed)
        if subject.group_shards is not None and len(listed) == 1:
            if not is_whole and (not self._held or type(self._held[0][0]) is type(module)):
                self._held.append((module, settings))
                if len(self._held) == subject.group_shards:
                    self._let_go(fully_shard)
                return
            self._let_go(fully_shard)
        if subject.shard_blocks and not is_whole:
            for block in blocks(module):
                fully_shard(block, **settings)
                self._sharded([block])
        fully_shard(module, **settings)
        self._sharded(listed)

    def _holds_shards(self, modules: list[nn.Module]) -> bool:
        known = {id(part) for part in [*self.subject.shards, *(held for held, _ in self._held)]}
        return any(id(part) in known for module in modules for part in module.modules())

    def _let_go(self, fully_shard: Callable[..., Any]) -> None:
        """Shard as one what was held back."""
        held, self._held = self._held, []
        if held:
            fully_shard([module for module, _ in held], **held[0][1])
            self._sharded([module for module, _ in held])

    def _sharded(self, modules: list[nn.Module]) -> None:
        for module in modules:
            self.subject.shards.append(module)
            module.register_forward_pre_hook(self._forward, with_kwargs=True)

    def _forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        subject = self.subject
        if subject.on_shards and subject.shards:
            changes, subject.on_shards = subject.on_shards, []
            for change in changes:
                change(subject.shards)
        if not (module.training and torch.is_grad_enabled()) or len(subject.synced) >= _FIRST_FORWARDS:
            return
        if isinstance(module, DistributedDataParallel):
            subject.synced.append(module.require_backward_grad_sync)
        if subject.micro_batch is None:  # the whole model is called before its parts
            subject.micro_batch = leading_dimension(Arguments(args, kwargs))

    def _backward(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def changed(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
            is_loss = isinstance(tensors, torch.Tensor) and tensors.numel() == 1
            backward(tensors, grad_tensors, *args, **kwargs)
            if is_loss:  # a checkpoint within a backward pass gives lists
                self._note_backward(tensors.detach())

        return changed

    def _note_backward(self, loss: torch.Tensor) -> None:
        subject = self.subject
        subject.pending += 1
        if self.num_steps < TRAINING_STEPS:
            self.losses[-1].append(loss)
        if subject.ddp_given.get("find_unused_parameters") and self.num_steps < TRAINING_STEPS:
            trained = {name for name, one in subject.whole.named_parameters() if one.requires_grad}
            subject.unused |= trained - self._fired
            self._fired.clear()

    def _before(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        subject = self.subject
        if self._stepping is None:
            if not (subject.ddp or subject.shards):
                raise InputError(_ANY_MODEL)
            self._stepping = optimizer
        if optimizer is not self._stepping:
            return
        for change in subject.before_update:
            change()
        if not self.gradients:
            updated = (parameter for group in optimizer.param_groups for parameter in group["params"])
            self.gradients = list(kept_gradients(updated))
        if self.num_steps < TRAINING_STEPS:
            subject.backwards.append(subject.pending)
            self.losses.append([])
        subject.pending = 0

    def _after(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if optimizer is self._stepping:
            self.num_steps += 1
            self._updated()
