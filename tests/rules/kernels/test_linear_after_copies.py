"""PYR534: linear maps of copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from waste import case_at

from pyrometer.rules.finding import Finding

CODE = "PYR534"


def test_the_map_is_told_at_its_line_with_what_copies(only: Callable[..., Finding]) -> None:
    finding = only(CODE, case_at(CODE, 0.5))
    assert finding.where.text == "model.py:12"
    assert "upsample" in finding.message
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5)


def test_projecting_first_gives_the_same(run: Callable[..., dict[str, Any]]) -> None:
    project, coarse = torch.nn.Conv2d(5, 3, 1), torch.randn(2, 5, 4, 4)
    before, after = (run(CODE, part, torch=torch)["merge"] for part in ("Example", "Use instead"))
    torch.testing.assert_close(before(project, coarse, (9, 12)), after(project, coarse, (9, 12)))
