"""PYR107: operators whose result is as large as the data says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.finding import Finding

CODE = "PYR107"


@pytest.mark.parametrize(
    "body",
    [
        "hits = torch.nonzero(scores > 0.5)  # <-",
        "hits = (scores > 0.5).nonzero(as_tuple=True)  # <-",
        "kinds = targets.unique()  # <-",
        "kinds, counts = torch.unique(targets, return_counts=True)  # <-",
        "picked = torch.masked_select(scores, scores > 0)  # <-",
        "rows = torch.where(scores > 0)  # <-",
        "rows = torch.repeat_interleave(scores, targets, dim=0)  # <-",
        "rows = scores.repeat_interleave(targets, dim=0)  # <-",
        "counts = torch.bincount(targets)  # <-",
    ],
)
def test_finds_results_of_unknown_size(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "kept = torch.where(scores > 0, scores, 0)",
        "rows = torch.repeat_interleave(scores, 3, dim=0)",
        "rows = scores.repeat_interleave(targets, dim=0, output_size=64)",
        "rows = np.unique(np.zeros(3))",
        "count = torch.count_nonzero(scores)",
        "if step % 100 == 0:\n    kinds = targets.unique()",
    ],
)
def test_is_silent_where_the_size_is_known_or_it_is_seldom(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_advice_names_the_call_that_knows_its_size(matches: Any, in_loop: Any) -> None:
    (match,) = matches(CODE, in_loop("rows = scores.repeat_interleave(targets, dim=0)"))
    assert "output_size" in match.advice
    (found,) = matches(CODE, in_loop("hits = torch.nonzero(scores > 0.5)"))
    assert "nonzero_static" in found.advice


SOURCE = """\
import torch


def step(model, batch):
    hits = torch.nonzero(model(batch) > 0.5)
    return hits
"""


@pytest.mark.parametrize("op", ["aten::nonzero", "aten::_unique2", "aten::masked_select"])
def test_a_device_trace_shows_what_waited(
    builder: Any, stalling: Any, evidence_of: Any, only: Any, op: str
) -> None:
    finding = only(CODE, evidence_of(stalling(builder, op), "train.py", SOURCE))
    assert finding.where.line == 5
    assert finding.cost.share > 0.4


def test_a_trace_without_waits_says_nothing(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(stalling(builder, None, wait=False), "train.py", SOURCE)) == []


def test_a_size_that_is_named_gives_the_same_rows(ops_of: Any) -> None:
    x = torch.tensor([0.0, 2.0, 0.0, 3.0])
    expected, before = ops_of(lambda: torch.nonzero(x))
    result, after = ops_of(lambda: torch.nonzero_static(x, size=4, fill_value=-1))
    assert torch.equal(result[:2], expected)
    assert result[2:].eq(-1).all()
    assert (before["nonzero"], after["nonzero"]) == (1, 0)
    counts = torch.tensor([1, 2, 0, 1])
    assert torch.equal(torch.repeat_interleave(x, counts), torch.repeat_interleave(x, counts, output_size=4))
    bins = torch.zeros(4, dtype=torch.long).scatter_add_(0, counts, torch.ones_like(counts))
    assert torch.equal(bins[:3], torch.bincount(counts))
