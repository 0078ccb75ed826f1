"""Training that logs too eagerly: every element of the loss is fetched with `.item()`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

import pyrometer as pm

BATCH = 512


def logged_loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    inputs, targets = batch
    losses = F.mse_loss(model(inputs), targets, reduction="none").mean(dim=1)
    worst = 0.0
    for loss in losses:
        worst = max(worst, loss.item())
    return losses.mean() + 0.0 * worst


def quiet_loss(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    inputs, targets = batch
    losses = F.mse_loss(model(inputs), targets, reduction="none").mean(dim=1)
    worst = losses.detach().max()
    return losses.mean() + 0.0 * worst


def training(loss: Callable[..., torch.Tensor]) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
    batches = [(torch.randn(BATCH, 64), torch.randn(BATCH, 16)) for _ in range(4)]
    return pm.Training(model, loss, torch.optim.SGD(model.parameters(), lr=0.01), batches)


def workload() -> pm.Training:
    return training(logged_loss)


def fixed() -> pm.Training:
    return training(quiet_loss)
