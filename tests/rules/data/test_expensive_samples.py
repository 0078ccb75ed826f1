"""PYR314: samples that keep all CPUs busy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding


def test_the_loaders_advice_is_carried_with_its_gain(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(verdict="starved-steady", advice=[advice("cheaper-samples", 0.03)])
    (finding,) = findings("PYR314", Case(target="a", loading=report))
    assert finding.advice.lever is None
    assert finding.advice.gain is not None
    assert finding.advice.gain.ratio_low == pytest.approx(1 - 1.25 * 0.3)  # the model may be a quarter off


@pytest.mark.parametrize("slug", ["more-workers", "deeper-queue"])
def test_where_workers_help_it_is_silent(
    slug: str,
    loading: Callable[..., Any],
    advice: Callable[..., Any],
    findings: Callable[..., list[Finding]],
) -> None:
    assert findings("PYR314", Case(target="a", loading=loading(advice=[advice(slug, 0.03)]))) == []


def test_the_replacement_gives_the_same_in_less_python(run: Callable[..., dict[str, Any]]) -> None:
    import sys

    runs = list(range(200))
    values, calls = [], []
    for heading in ("Example", "Use instead"):
        decode = run("PYR314", heading)["decode"]
        lines = 0

        def count(_frame: Any, _event: str, _given: Any) -> Any:
            nonlocal lines
            lines += 1
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            values.append(decode(runs))
        finally:
            sys.settrace(before)
        calls.append(lines)
    assert torch.allclose(*values, atol=1e-6)
    assert calls[0] > 50 * calls[1]
