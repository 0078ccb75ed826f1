"""PYR125: random numbers drawn by Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR125"
Sampled = Callable[..., Case]


STEP = """
def corrupt(tokens):
    kept = [[random.random() > 0.15 for _ in row] for row in tokens.tolist()]
    return tokens * torch.tensor(kept)
"""


def test_numbers_drawn_one_by_one_are_told(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(CODE, sampled(STEP, {3: {"random random.random": 0.3, "python python": 0.4}}))
    assert finding.where.line == 3
    assert finding.advice.fix_class == "semantic"


def test_little_of_it_is_left_alone(sampled: Sampled, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, sampled(STEP, {3: {"random random.random": 0.1}})) == []


def test_one_call_draws_as_many_of_the_same_share(run: Callable[..., dict[str, Any]]) -> None:
    import random

    with torch.random.fork_rng():
        torch.manual_seed(0)
        tokens = torch.ones(100, 100)
        before = run(CODE, "Example", tokens=tokens, torch=torch, random=random.Random(0))["mask"]
        after = run(CODE, "Use instead", tokens=tokens, torch=torch)["mask"]
    assert before.shape == after.shape
    assert after.float().mean().item() == pytest.approx(before.float().mean().item(), abs=0.03)
