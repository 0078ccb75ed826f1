"""What rules about work that nobody needs have in common: place, share, range, and the share below which they are silent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from waste import case_at

from pyrometer.rules.finding import Finding

COSTS = {
    "PYR317": 0.4,
    "PYR530": 0.5,
    "PYR531": 0.5,
    "PYR532": 0.5,
    "PYR533": 0.5,
    "PYR534": 0.5,
    "PYR536": 0.5,
}
"""Share of a step of what takes half of the operators' time; of padding, the part that is padded."""


@pytest.mark.parametrize(("code", "cost"), COSTS.items())
def test_what_costs_is_told_at_its_line_with_its_share(
    code: str, cost: float, only: Callable[..., Finding]
) -> None:
    finding = only(code, case_at(code, 0.5))
    assert finding.where.text == "model.py:12"
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(cost)
    gain = finding.advice.gain
    assert gain is not None
    assert gain.ratio_low is not None
    assert gain.ratio_high is not None
    assert 0 <= gain.ratio_low < 1 - cost < gain.ratio_high < 1


@pytest.mark.parametrize("code", COSTS)
def test_what_costs_little_is_left_out(code: str, findings: Callable[..., list[Finding]]) -> None:
    assert findings(code, case_at(code, 0.04)) == []
