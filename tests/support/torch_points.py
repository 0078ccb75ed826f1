"""The points of torch that are observed: whether they are as torch has them."""

from __future__ import annotations

import sys
from typing import Any

import torch


def points() -> tuple[Any, ...]:
    """What is observed at each point; equal before and after an observation that left nothing behind."""
    loader = torch.utils.data.dataloader._BaseDataLoaderIter
    run = torch.autograd.graph._engine_run_backward
    optimizers = sys.modules["torch.optim.optimizer"]
    hooks = (dict(optimizers._global_optimizer_pre_hooks), dict(optimizers._global_optimizer_post_hooks))
    return torch.nn.Module.__call__.__code__, run.__code__, loader.__next__.__code__, hooks
