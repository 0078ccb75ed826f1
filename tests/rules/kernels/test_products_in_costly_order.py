"""PYR536: three matrices in the order that takes more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from waste import case_at

from pyrometer.rules.finding import Finding

CODE = "PYR536"


def test_both_products_are_told_with_what_the_other_order_takes(only: Callable[..., Finding]) -> None:
    finding = only(CODE, case_at(CODE, 0.5))
    assert finding.where.text == "model.py:12"
    assert "8 × 2,048 × 2,048" in finding.message
    assert "model.py:13" in finding.message
    assert "3.00 % of the multiplications" in finding.message
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5)


def test_the_other_order_gives_the_same(run: Callable[..., dict[str, Any]]) -> None:
    query, key, value = (torch.rand(2, 40, 3) for _ in range(3))
    before, after = (run(CODE, part, torch=torch)["linear_attention"] for part in ("Example", "Use instead"))
    torch.testing.assert_close(before(query, key, value), after(query, key, value))
