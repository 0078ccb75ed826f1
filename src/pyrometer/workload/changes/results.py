"""What steps of a training compute, to be held against those of a changed one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import torch

from pyrometer.workload.failure import user_code
from pyrometer.workload.training import TrainingSession
from pyrometer.workload.workload import Workload

STEPS = 2

Tensors: TypeAlias = list[dict[str, torch.Tensor]]
"""By name, of each step."""


def results_of(work: Workload, seed: int = 0) -> Tensors:
    """Gradients as the optimizer gets them, and the buffers after it, step by step; the same seed before the first."""
    with work.open() as session:
        assert isinstance(session, TrainingSession)
        session.activate()
        found: Tensors = []
        handle = session.parts.optimizer.register_step_pre_hook(
            lambda *_: found.append(dict(_gradients(session)))
        )
        try:
            torch.manual_seed(seed)
            with user_code("the step"):
                for _ in range(STEPS):
                    session.prepare()
                    session.step()
                    if found:
                        found[-1].update(_buffers(session))
        finally:
            handle.remove()
        return found


def _gradients(session: TrainingSession) -> Iterator[tuple[str, torch.Tensor]]:
    for part in session.parts.modules:
        for name, parameter in part.named_parameters():
            if parameter.grad is not None:
                yield f"{name}.grad", _plain(parameter.grad)


def _buffers(session: TrainingSession) -> dict[str, torch.Tensor]:
    return {name: _plain(buffer) for part in session.parts.modules for name, buffer in part.named_buffers()}


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to_dense() if tensor.is_sparse else tensor.detach().clone()
