"""Another optimizer over the same parameters, by name, class or function."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

import torch

from pyrometer.errors import InputError
from pyrometer.memory.prediction.settings import OptimizerChoice
from pyrometer.workload.failure import user_code

_WORDS: dict[str, dict[str, Any]] = {
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "fused": {"fused": True},
    "foreach": {"foreach": True},
    "plain": {"foreach": False},
    "amsgrad": {"amsgrad": True},
    "centered": {"centered": True},
}


def optimizer_over(choice: OptimizerChoice, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
    """Make an optimizer.

    Args:
        choice: a class of `torch.optim` by name, with words such as "momentum", "fused" or "foreach" behind; a class;
            or a function of the parameters.
        parameters: what it trains.

    Raises:
        InputError: there is no such optimizer, or it is none.

    >>> type(optimizer_over("SGD momentum", [torch.zeros(2, requires_grad=True)])).__name__
    'SGD'
    """
    if isinstance(choice, str):
        return _by_name(choice, parameters)
    with user_code("the optimizer's factory"):
        optimizer: Any = choice(parameters)  # type: ignore[call-arg]
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InputError(
            f"optimizer: the factory returned {type(optimizer).__name__}; it must return a torch.optim.Optimizer"
        )
    return optimizer


def _by_name(text: str, parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
    name, *words = text.split() or [""]
    kinds = {kind.lower(): kind for kind in _names()}
    if name.lower() not in kinds:
        near = difflib.get_close_matches(name.lower(), kinds, 1)
        hint = f"; did you mean {kinds[near[0]]}?" if near else ""
        raise InputError(f"optimizer: got {text!r}; legal are {', '.join(sorted(kinds.values()))}{hint}")
    unknown = [word for word in words if word not in _WORDS]
    if unknown:
        raise InputError(f"optimizer: got {text!r}; legal words behind the name are {', '.join(_WORDS)}")
    kind: Any = getattr(torch.optim, kinds[name.lower()])
    options: dict[str, Any] = {}
    for word in words:
        options |= _WORDS[word]
    if "lr" in inspect.signature(kind).parameters:
        options["lr"] = 1e-3
    try:
        return kind(parameters, **options)  # type: ignore[no-any-return]
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"optimizer: {text!r} cannot be made: {error}") from error


def _names() -> list[str]:
    """First-order optimizers of this torch."""
    return [
        name
        for name, kind in vars(torch.optim).items()
        if inspect.isclass(kind)
        and issubclass(kind, torch.optim.Optimizer)
        and kind not in {torch.optim.Optimizer, torch.optim.LBFGS}
    ]


def use_foreach(optimizer: torch.optim.Optimizer) -> None:
    """Choose the implementation that torch takes on CUDA where none was asked for: over lists of tensors at once."""
    for group in optimizer.param_groups:
        if group.get("foreach", False) is None and not group.get("fused") and not group.get("differentiable"):
            group["foreach"] = True
