"""PYR306: too few batches prepared ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = "from torch.utils.data import DataLoader\n"
FIRES = {
    "one": "loader = DataLoader(data, num_workers=4, prefetch_factor=1)  # <-\n",
    "through a constant": "AHEAD = 1\nloader = DataLoader(data, num_workers=2, prefetch_factor=AHEAD)  # <-\n",
}
SILENT = {
    "two": "loader = DataLoader(data, num_workers=4, prefetch_factor=2)\n",
    "not given": "loader = DataLoader(data, num_workers=4)\n",
    "unknown": "loader = DataLoader(data, num_workers=4, prefetch_factor=args.ahead)\n",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_number(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR306", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR306", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR306")


def test_the_loaders_advice_is_carried(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(verdict="bursty", advice=[advice("deeper-queue", lever="prefetch_factor")])
    (finding,) = findings("PYR306", Case(target="a", loading=report))
    assert (finding.severity, finding.advice.lever, finding.advice.gain) == (
        "warning",
        "prefetch_factor",
        None,
    )
    assert findings("PYR306", Case(target="a", loading=loading(verdict="bursty"))) == []


@pytest.mark.parametrize("ahead", [1, 4])
def test_more_batches_ahead_are_the_same_batches(ahead: int) -> None:
    loader = torch.utils.data.DataLoader(torch.arange(20), batch_size=3, num_workers=2, prefetch_factor=ahead)
    assert torch.cat(list(loader)).tolist() == list(range(20))
