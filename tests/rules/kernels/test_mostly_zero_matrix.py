"""PYR533: dense matrices that are mostly zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from waste import case_at

from pyrometer.rules.finding import Finding


def test_what_costs_is_told_at_its_line_with_its_share(only: Callable[..., Finding]) -> None:
    finding = only("PYR533", case_at("PYR533", 0.5))
    assert finding.where.text == "model.py:12"
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.5)
    gain = finding.advice.gain
    assert gain is not None
    assert gain.ratio_low is not None
    assert gain.ratio_high is not None
    assert 0 <= gain.ratio_low < 1 - 0.5 < gain.ratio_high < 1


def test_what_costs_little_is_left_out(findings: Callable[..., list[Finding]]) -> None:
    assert findings("PYR533", case_at("PYR533", 0.04)) == []


def test_masked_attention_has_advice_of_its_own(only: Callable[..., Finding]) -> None:
    case = case_at("PYR533", 0.5)
    assert case.dataflow is not None
    masked = [
        msgspec.structs.replace(fact, masked=True, zero_share=0.9) for fact in case.dataflow.mostly_zero
    ]
    flow = msgspec.structs.replace(case.dataflow, mostly_zero=masked)
    finding = only("PYR533", msgspec.structs.replace(case, dataflow=flow))
    assert "leaves out 90.0 %" in finding.message
    assert "unfold" in finding.advice.title


def test_an_edge_list_mixes_like_the_matrix(run: Callable[..., dict[str, Any]]) -> None:
    edges = torch.unique(torch.randint(0, 30, (2, 60)), dim=1)
    given = {
        "torch": torch,
        "nodes": 30,
        "edges": edges,
        "weights": torch.rand(edges.shape[1]),
        "features": torch.rand(30, 4),
    }
    torch.testing.assert_close(
        run("PYR533", "Example", **given)["mixed"], run("PYR533", "Use instead", **given)["mixed"]
    )
