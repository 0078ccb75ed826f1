"""PYR532: results that nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from waste import case_at

from pyrometer.rules.finding import Finding


def test_what_costs_is_told_at_its_line_with_its_share(only: Callable[..., Finding]) -> None:
    finding = only("PYR532", case_at("PYR532", 0.5))
    assert finding.where.text == "model.py:12"
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5)
    gain = finding.advice.gain
    assert gain is not None
    assert gain.ratio_low is not None
    assert gain.ratio_high is not None
    assert 0 <= gain.ratio_low < 1 - 0.5 < gain.ratio_high < 1


def test_what_costs_little_is_left_out(findings: Callable[..., list[Finding]]) -> None:
    assert findings("PYR532", case_at("PYR532", 0.04)) == []


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
