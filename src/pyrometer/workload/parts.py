"""The objects that a training step changes: restored where they are, or copied together."""

from __future__ import annotations

import contextlib
import copy
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.workload.failure import first_line
from pyrometer.workload.state import (
    module_tensors,
    optimizer_tensors,
    preserved_grads,
    preserved_module,
    preserved_optimizer,
    preserved_scaler,
    preserved_state_dict,
)
from pyrometer.workload.variant import Variant, is_compiled

_in_use: weakref.WeakSet[nn.Module] = weakref.WeakSet()


class TrainingParts(NamedTuple):
    """A model with what trains it."""

    model: nn.Module
    loss: Callable[..., torch.Tensor] | None
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler | None
    scheduler: torch.optim.lr_scheduler.LRScheduler | None

    @property
    def modules(self) -> list[nn.Module]:
        """The model, and the loss where that is a module: it may have parameters or buffers too."""
        return [part for part in (self.model, self.loss) if isinstance(part, nn.Module)]

    @property
    def in_use(self) -> bool:
        """Whether an open session works on these very objects."""
        return self.model in _in_use

    def tensors(self) -> list[torch.Tensor]:
        """Every tensor that a step may change, gradients apart; each once."""
        tensors = [tensor for part in self.modules for tensor in module_tensors(part, parameters=True)]
        tensors += self.trained() + optimizer_tensors(self.optimizer)
        return list({id(tensor): tensor for tensor in tensors}.values())

    def trained(self) -> list[torch.Tensor]:
        """The tensors that the optimizer updates."""
        return [tensor for group in self.optimizer.param_groups for tensor in group["params"]]

    def with_gradients(self) -> list[torch.Tensor]:
        """The tensors that a backward pass gives gradients to."""
        return [*(parameter for part in self.modules for parameter in part.parameters()), *self.trained()]

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[None]:
        """Work on these very objects, starting without gradients; everything is restored at the end."""
        with contextlib.ExitStack() as stack:
            for part in self.modules:
                stack.enter_context(preserved_module(part, parameters=True))
            stack.enter_context(preserved_optimizer(self.optimizer))
            if self.scaler is not None:
                stack.enter_context(preserved_scaler(self.scaler))
            if self.scheduler is not None:
                stack.enter_context(preserved_state_dict(self.scheduler))
            stack.enter_context(preserved_grads(self.with_gradients()))
            stack.callback(_in_use.discard, self.model)
            _in_use.add(self.model)
            yield

    def copied(self, variant: Variant) -> TrainingParts:
        """An independent copy, with the parameters as the variant wants them, and without gradients.

        Raises:
            InputError: a part cannot be copied.
        """
        memo: dict[int, Any] = {}
        parts = TrainingParts(*(_copied(name, part, memo) for name, part in self._asdict().items()))
        _complete_optimizer(self.optimizer, parts.optimizer, memo)
        if variant.changes_parameters:
            parts._convert(variant)
        return parts

    def _convert(self, variant: Variant) -> None:
        """Cast and lay out the modules, and the optimizer's state that had its parameter's dtype along with them."""
        dtypes = {parameter: parameter.dtype for parameter in self.trained()}
        for part in self.modules:
            variant.convert(part)
        for parameter, state in self.optimizer.state.items():
            for name, value in state.items():
                if (
                    isinstance(value, torch.Tensor)
                    and value.shape == parameter.shape != ()
                    and value.dtype == dtypes[parameter]
                ):
                    state[name] = torch.empty_like(parameter, requires_grad=False).copy_(value)


def copied_module(name: str, module: nn.Module) -> nn.Module:
    """An independent copy of a module.

    Raises:
        InputError: it cannot be copied; `name` says which argument it was.
    """
    copied: nn.Module = _copied(name, module, {})
    return copied


def submodules_of(model: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    """Every place where a module holds another: the holder, the name, and the module; shared ones once for each place.

    >>> [(name, type(child).__name__) for _, name, child in submodules_of(nn.Sequential(nn.ReLU()))]
    [('0', 'ReLU')]
    """
    return [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent._modules.items()  # noqa: SLF001 - named_children leaves out the second place of a shared one
        if child is not None
    ]


def is_lazy(module: nn.Module) -> bool:
    """Whether a module has parameters or buffers without a shape yet; its first call changes it for good."""
    return any(torch.nn.parameter.is_lazy(tensor) for tensor in module_tensors(module, parameters=True))


def _copied(name: str, part: Any, memo: dict[int, Any]) -> Any:
    if isinstance(part, nn.Module):
        _require_copyable(name, part)
        # torch copies lazy parameters, but not lazy buffers.
        for buffer in filter(torch.nn.parameter.is_lazy, part.buffers()):
            memo[id(buffer)] = nn.UninitializedBuffer(  # type: ignore[call-arg]
                device=buffer.device, dtype=buffer.dtype
            )
    try:
        return copy.deepcopy(part, memo)
    except Exception as error:
        raise InputError(
            f"{name}: cannot be copied ({type(error).__name__}: {first_line(error)}); a copy is needed for another "
            "dtype or memory format, and for a second session beside the first: "
            "make the objects of each side in its own factory"
        ) from error


def _require_copyable(name: str, module: nn.Module) -> None:
    # A copy would silently be the uncompiled module.
    inner = getattr(module, "_orig_mod", module)
    for part in inner.modules():
        if is_compiled(part) and not hasattr(part, "_orig_mod"):
            raise InputError(
                f"{name}: {type(part).__name__} was compiled in place by .compile(), which a copy would lose; "
                "give the plain module, or wrap it by torch.compile(module)"
            )


def _complete_optimizer(
    original: torch.optim.Optimizer, own: torch.optim.Optimizer, memo: dict[int, Any]
) -> None:
    """Give a copied optimizer what `Optimizer.__getstate__` left behind: hooks, and attributes of its own class."""
    dropped = {name: value for name, value in vars(original).items() if name not in original.__getstate__()}
    step = dropped.pop("step", None)
    vars(own).update(copy.deepcopy(dropped, memo))
    if step is None:
        return
    if not hasattr(step, "_wrapped_by_lr_sched"):
        raise InputError(
            "optimizer: its step() was replaced on the instance, which a copy would lose; subclass it"
        )
    # A scheduler's wrapper is bound to the original by a weak reference: copied, it would step the user's optimizer.
    own.step = tracked_step(own)  # type: ignore[method-assign]


def tracked_step(optimizer: torch.optim.Optimizer) -> Callable[..., Any]:
    """An optimizer's step as a scheduler wraps it, to know whether it was called first."""
    step, reference = type(optimizer).step, weakref.ref(optimizer)

    @functools.wraps(step)
    def tracked(*args: Any, **kwargs: Any) -> Any:
        own: Any = reference()
        own._opt_called = True  # noqa: SLF001 - what schedulers look at
        return step(own, *args, **kwargs)

    tracked._wrapped_by_lr_sched = True  # type: ignore[attr-defined]  # noqa: SLF001
    return tracked
