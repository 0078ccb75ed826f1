"""PYR531: gradients that nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from waste import case_at

from pyrometer.rules.finding import Finding


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
