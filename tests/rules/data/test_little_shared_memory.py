"""PYR316: queues that do not fit into shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.loading.settings import LoaderSettings
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding


@pytest.mark.parametrize(("free", "severity"), [(100, "error"), (1500, "warning")])
def test_a_queue_that_may_not_fit_is_told(
    free: int,
    severity: str,
    loading: Callable[..., Any],
    advice: Callable[..., Any],
    findings: Callable[..., list[Finding]],
) -> None:
    report = loading(shm_needed_bytes=1000, shm_free_bytes=free, advice=[advice("shared-memory")])
    (finding,) = findings("PYR316", Case(target="a", loading=report))
    assert finding.severity == severity
    assert finding.cost is not None
    assert finding.cost.bytes == 1000


@pytest.mark.parametrize("free", [None, 10_000])
def test_without_the_advice_or_a_limit_it_is_silent(
    free: int | None, loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(shm_needed_bytes=1000, shm_free_bytes=free)
    assert findings("PYR316", Case(target="a", loading=report)) == []


def test_the_replacement_holds_fewer_batches() -> None:
    many = LoaderSettings(num_workers=16, prefetch_factor=8)
    few = LoaderSettings(num_workers=8, prefetch_factor=2)
    assert few.capacity * 8 == many.capacity
