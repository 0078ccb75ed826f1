"""PYR532: results that nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from waste import case_at

from pyrometer.rules.finding import Finding


def test_other_facts_of_the_kind_are_not_meant(findings: Callable[..., list[Finding]]) -> None:
    assert findings("PYR532", case_at("PYR531", 0.5)) == []


def test_results_that_nobody_reads_can_be_left_out(run: Callable[..., dict[str, Any]]) -> None:
    given = {
        "backbone": torch.tanh,
        "auxiliary_head": torch.exp,
        "classify": torch.relu,
        "images": torch.randn(3),
    }
    assert torch.equal(
        run("PYR532", "Example", **given)["scores"], run("PYR532", "Use instead", **given)["scores"]
    )
