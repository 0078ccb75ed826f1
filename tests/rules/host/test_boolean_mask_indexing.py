"""PYR106: selections whose size only the device knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.finding import Finding

CODE = "PYR106"


@pytest.mark.parametrize(
    "body",
    [
        "picked = scores[scores > 0]  # <-",
        "mask = targets != -100\npicked = scores[mask]  # <-",
        "picked = scores[~torch.isnan(scores)].mean()  # <-",
        "picked = scores[(scores > 0) & (scores < 1)]  # <-",
        "picked = scores[:, targets.bool()]  # <-",
        "scores[scores > 0] += 1  # <-",
    ],
)
def test_finds_reads_with_a_boolean_mask(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "scores[scores < 0] = 0",  # fills in place, and waits for nothing
        "rows = scores[targets]",  # indices of rows
        "first = scores[:, 0]",
        "kept = torch.where(scores > 0, scores, 0)",
        "names = history[step]",
        "values = np.zeros(3)\nbig = values[values > 1]",
    ],
)
def test_is_silent_about_other_indexing(silent: Any, body: str) -> None:
    silent(CODE, body)


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("errors[mask].sum()", "torch.where(mask, errors, 0).sum()"),
        ("errors[mask].mean()", "(torch.where(mask, errors, 0).sum() / (mask).sum())"),
        ("errors[mask].prod()", "torch.where(mask, errors, 1).prod()"),
    ],
)
def test_the_rewrite_gives_the_same_without_selecting(
    matches: Any, in_loop: Any, ops_of: Any, text: str, rewritten: str
) -> None:
    (match,) = matches(CODE, in_loop(f"errors = scores.abs()\nmask = errors > 0.5\nx = {text}"))
    assert f"`{rewritten}`" in match.advice
    torch.manual_seed(0)
    names = {"errors": torch.rand(6, 5), "torch": torch}
    names["mask"] = names["errors"] > 0.5
    expected, before = ops_of(lambda: eval(text, names))
    result, after = ops_of(lambda: eval(rewritten, names))
    torch.testing.assert_close(result, expected)
    assert before["index"] == 1
    assert after["index"] == 0


SOURCE = """\
def step(model, x, targets):
    errors = (model(x) - targets).abs()
    return errors[targets > 0].sum()
"""


def test_a_device_trace_gives_the_line_of_the_index(
    builder: Any, stalling: Any, evidence_of: Any, only: Any
) -> None:
    evidence = evidence_of(stalling(builder, "aten::index", frame="train.py(1): step"), "train.py", SOURCE)
    finding = only(CODE, evidence)
    assert finding.where.line in {1, 3}  # the mask of an argument without annotation is not certain
    assert finding.cost.share > 0.4


def test_indexing_that_does_not_wait_is_not_in_the_trace_s_list(
    builder: Any, stalling: Any, evidence_of: Any, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, evidence_of(stalling(builder, None, wait=False), "train.py", SOURCE)) == []
