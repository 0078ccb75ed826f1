"""PYR537: numbers next to zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from waste import case_at

from pyrometer.rules.finding import Finding

CODE = "PYR537"


def test_what_such_numbers_take_is_told_with_the_setting(only: Callable[..., Finding]) -> None:
    finding = only(CODE, case_at(CODE, 0.6))
    gain = finding.advice.gain
    assert finding.advice.lever == "flush_denormals"
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.6)
    assert gain is not None
    assert 0 < (gain.ratio_low or 0) < 0.4 < (gain.ratio_high or 0) < 1


def test_little_is_left_alone(findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, case_at(CODE, 0.05)) == []


def test_the_state_is_the_same_where_it_is_large(run: Callable[..., dict[str, Any]]) -> None:
    ends = []
    for title in ("Example", "Use instead"):
        try:
            given = {"state": torch.ones(4), "weight": torch.ones(4), "inputs": [torch.ones(4)] * 3}
            ends.append(run(CODE, title, torch=torch, **given)["state"])
        finally:
            torch.set_flush_denormal(False)
    assert torch.equal(*ends)
