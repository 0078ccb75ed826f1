"""Everything that a training step changes, as one dictionary of tensors and plain values, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.workload.parts import TrainingParts
from pyrometer.workload.program.modules import unwrapped
from pyrometer.workload.state import Stateful


def training_state(parts: TrainingParts) -> dict[str, Any]:
    """Modules with all their buffers, optimizer, scheduler and scaler; tensors are the live ones, not copies."""
    return {
        "modules": [unwrapped(module).state_dict() for module in parts.modules],
        "unsaved_buffers": [_unsaved_buffers(unwrapped(module)) for module in parts.modules],
        **{name: part.state_dict() for name, part in _stateful(parts).items()},
    }


def load_training_state(parts: TrainingParts, state: dict[str, Any]) -> None:
    """Take a state on, in the very tensors that are there.

    Raises:
        InputError: it is of another model, optimizer, scheduler or scaler.
    """
    try:
        for module, saved, buffers in zip(
            parts.modules, state["modules"], state["unsaved_buffers"], strict=True
        ):
            own = unwrapped(module)
            own.load_state_dict(saved)
            own_buffers = _unsaved_buffers(own)
            for name, buffer in buffers.items():
                own_buffers[name].copy_(buffer)
        for name, part in _stateful(parts).items():
            part.load_state_dict(state[name])
        _restore_dtypes(parts.optimizer, state["optimizer"])
    except (KeyError, ValueError, RuntimeError) as error:
        raise InputError(
            f"checkpoint: does not fit this training ({type(error).__name__}: {str(error).splitlines()[0]}); "
            "resume with the model, optimizer, scheduler and scaler that it was written with"
        ) from error


def _stateful(parts: TrainingParts) -> dict[str, Stateful]:
    named = {"optimizer": parts.optimizer, "scheduler": parts.scheduler, "scaler": parts.scaler}
    enabled = parts.scaler is not None and parts.scaler.is_enabled()  # a disabled one refuses to load
    return {name: part for name, part in named.items() if part is not None and (name != "scaler" or enabled)}


def _unsaved_buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers that are not in the state dict, which a resumed training needs all the same."""
    saved = module.state_dict()
    return {name: buffer for name, buffer in module.named_buffers() if name not in saved}


def _restore_dtypes(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Put back what `load_state_dict` rounded: it casts state to the parameter's dtype, also float32 state of bfloat16."""
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in zip(numbers, parameters, strict=True):
        own = optimizer.state[parameter] if number in saved["state"] else {}
        for name, value in own.items():
            given = saved["state"][number][name]
            if isinstance(value, torch.Tensor) and value.dtype != given.dtype and name != "step":
                own[name] = given.to(value.device)
