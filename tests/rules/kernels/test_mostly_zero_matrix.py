"""PYR533: dense matrices that are mostly zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import torch
from waste import case_at

from pyrometer.rules.finding import Finding


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
