"""PYR530: what is computed for all and used for few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from waste import case_at

from pyrometer.rules.finding import Finding


def test_what_costs_is_told_at_its_line_with_its_share(only: Callable[..., Finding]) -> None:
    finding = only("PYR530", case_at("PYR530", 0.5))
    assert finding.where.text == "model.py:12"
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5)
    gain = finding.advice.gain
    assert gain is not None
    assert gain.ratio_low is not None
    assert gain.ratio_high is not None
    assert 0 <= gain.ratio_low < 1 - 0.5 < gain.ratio_high < 1


def test_what_costs_little_is_left_out(findings: Callable[..., list[Finding]]) -> None:
    assert findings("PYR530", case_at("PYR530", 0.04)) == []


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
