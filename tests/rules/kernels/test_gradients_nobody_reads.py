"""PYR531: gradients that nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from waste import case_at

from pyrometer.rules.finding import Finding


def test_what_costs_is_told_at_its_line_with_its_share(only: Callable[..., Finding]) -> None:
    finding = only("PYR531", case_at("PYR531", 0.5))
    assert finding.where.text == "model.py:12"
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5)
    gain = finding.advice.gain
    assert gain is not None
    assert gain.ratio_low is not None
    assert gain.ratio_high is not None
    assert 0 <= gain.ratio_low < 1 - 0.5 < gain.ratio_high < 1


def test_what_costs_little_is_left_out(findings: Callable[..., list[Finding]]) -> None:
    assert findings("PYR531", case_at("PYR531", 0.04)) == []


def test_other_facts_of_the_kind_are_not_meant(findings: Callable[..., list[Finding]]) -> None:
    assert findings("PYR531", case_at("PYR532", 0.5)) == []


def test_asking_for_the_inputs_gradient_gives_the_same_step(run: Callable[..., dict[str, Any]]) -> None:
    net, label = nn.Linear(6, 3), torch.tensor([1, 2])
    steps = []
    for heading in ("Example", "Use instead"):
        net.zero_grad()
        torch.manual_seed(0)
        given = {"torch": torch, "net": net, "label": label, "image": torch.randn(2, 6)}
        steps.append(run("PYR531", heading, **given)["step"])
        assert (net.weight.grad is None) == (heading == "Use instead")
    assert torch.equal(*steps)
