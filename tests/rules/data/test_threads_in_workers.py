"""PYR315: workers that keep several CPUs busy each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding


def test_the_loaders_advice_is_carried(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(verdict="starved-steady", advice=[advice("one-thread-per-worker")])
    (finding,) = findings("PYR315", Case(target="a", loading=report))
    assert (finding.severity, finding.confidence, finding.advice.gain) == ("warning", "high", None)


@pytest.mark.parametrize("slug", ["more-workers", "fewer-workers"])
def test_other_advice_is_not_its_own(
    slug: str,
    loading: Callable[..., Any],
    advice: Callable[..., Any],
    findings: Callable[..., list[Finding]],
) -> None:
    assert findings("PYR315", Case(target="a", loading=loading(advice=[advice(slug)]))) == []


def test_what_worker_init_fn_limits_holds_in_the_worker() -> None:
    class Threads(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            import os

            return int(os.environ.get("THREADS_OF_A_LIBRARY", "8"))

    def one_thread(_worker: int) -> None:
        import os

        os.environ["THREADS_OF_A_LIBRARY"] = "1"

    def threads(**settings: Any) -> list[int]:
        loader = torch.utils.data.DataLoader(
            Threads(), num_workers=1, multiprocessing_context="fork", **settings
        )
        return [int(one) for one in loader]

    assert threads() == [8, 8]
    assert threads(worker_init_fn=one_thread) == [1, 1]
