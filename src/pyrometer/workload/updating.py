"""The end of an optimizer step: gradients are unscaled and clipped, and what steps with the optimizer steps."""

from __future__ import annotations

from typing import Any

import torch

from pyrometer.workload.parts import TrainingParts


def update(parts: TrainingParts, clip_norm: float | None = None) -> bool:
    """Step the optimizer and let go of the gradients; false where the scaler skipped the step, since gradients overflowed.

    The scheduler steps only where the optimizer did.
    """
    optimizer, scaler, scheduler = parts.optimizer, parts.scaler, parts.scheduler
    if clip_norm is not None:
        if scaler is not None:
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(parts.trained(), clip_norm)
    stepped = True
    if scaler is None:
        optimizer.step()
    else:
        stepped = _scaled_step(optimizer, scaler)
    optimizer.zero_grad(set_to_none=True)
    if stepped and scheduler is not None:
        scheduler.step()
    return stepped


def _scaled_step(optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> bool:
    """Step through the scaler, and tell whether the optimizer did; reading the scale would wait for the optimizer's kernels.

    The scaler calls an optimizer only if no gradient overflowed, which it waits for; one with a fused kernel it always
    calls, and tells it by `found_inf`.
    """
    stepped = False

    def note(called: Any, _args: Any, _kwargs: Any) -> None:
        nonlocal stepped
        found_inf = getattr(called, "found_inf", None)
        stepped = found_inf is None or not bool(found_inf)

    hook = optimizer.register_step_pre_hook(note)
    try:
        scaler.step(optimizer)
    finally:
        hook.remove()
    scaler.update()
    return stepped
