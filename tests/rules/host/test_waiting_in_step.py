"""PYR124: steps that sleep or wait for locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR124"
Sampled = Callable[..., Case]


STEP = """
def fetch(feed):
    while not feed.ready():
        time.sleep(0.01)
    return feed.take()
"""


@pytest.mark.parametrize("leaf", ["sleep time.sleep", "lock Lock.acquire"])
def test_waiting_is_told_at_its_line(sampled: Sampled, only: Callable[..., Finding], leaf: str) -> None:
    finding = only(CODE, sampled(STEP, {4: {leaf: 0.5}, 5: {"operator clone": 0.3}}))
    assert (finding.where.line, finding.where.function) == (4, "fetch")


def test_little_of_it_is_left_alone(sampled: Sampled, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, sampled(STEP, {4: {"sleep time.sleep": 0.1}})) == []


def test_what_was_asked_for_ahead_is_there_without_a_sleep(run: Callable[..., dict[str, Any]]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    class Worker:
        def take(self) -> int:
            return 7

    worker = Worker()
    with ThreadPoolExecutor() as executor:
        left = run(
            CODE, "Use instead", worker=worker, executor=executor, waiting=executor.submit(worker.take)
        )
        assert (left["batch"], left["waiting"].result()) == (7, 7)
