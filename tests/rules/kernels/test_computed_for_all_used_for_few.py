"""PYR530: what is computed for all and used for few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def test_selecting_first_gives_the_same_loss_and_gradients(run: Callable[..., dict[str, Any]]) -> None:
    torch.manual_seed(0)
    head, hidden = nn.Linear(8, 20), torch.randn(3, 10, 8)
    labels = torch.where(torch.rand(3, 10) < 0.2, torch.randint(0, 20, (3, 10)), -100)
    seen = []
    for heading in ("Example", "Use instead"):
        head.zero_grad()
        made = run("PYR530", heading, torch=torch, head=head, hidden=hidden, labels=labels)
        made["loss"].backward()
        seen.append((made["loss"].detach(), head.weight.grad))
    torch.testing.assert_close(*seen)
