"""PYR317: batches padded to a constant length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from waste import case_at

from pyrometer.rules.finding import Finding


def test_what_costs_is_told_at_its_line_with_its_share(only: Callable[..., Finding]) -> None:
    finding = only("PYR317", case_at("PYR317", 0.5))
    assert finding.where.text == "model.py:12"
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.4)
    gain = finding.advice.gain
    assert gain is not None
    assert gain.ratio_low is not None
    assert gain.ratio_high is not None
    assert 0 <= gain.ratio_low < 1 - 0.4 < gain.ratio_high < 1


def test_what_costs_little_is_left_out(findings: Callable[..., list[Finding]]) -> None:
    assert findings("PYR317", case_at("PYR317", 0.04)) == []


def test_padding_to_the_longest_gives_the_same_words(run: Callable[..., dict[str, Any]]) -> None:
    samples = [torch.arange(1, n) for n in (5, 9, 3)]
    fixed, longest = (
        run("PYR317", heading, torch=torch)["collate"](samples) for heading in ("Example", "Use instead")
    )
    assert longest.shape == (3, 8)
    assert torch.equal(fixed[:, :8], longest)
    assert not fixed[:, 8:].any()
