from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.guard.gate import Gate, GuardReport, Revision
from pyrometer.record import to_dict
from pyrometer.store.run import Run, new_run
from pyrometer.store.store import Store

SELF_CHECK = Verdict(
    outcome="same", ratio=1.0, ci_low=0.99, ci_high=1.01, confidence=0.99, margin=0.05, smallest_effect=0.02, num_blocks=5,
    elapsed_s=1.0,
)  # fmt: skip
STEPS = [0.0] * 10 + [math.log(1.1)] + [0.0] * 9


def report(
    base: str, head: str, step: float, *, seed: int = 0, outcome: str = "unchanged", **fields: Any
) -> GuardReport:
    noise = np.random.default_rng(seed).normal(0, 0.005, 5)
    values = [float(value) for value in step + noise - noise.mean()]
    timed = Gate(
        benchmark="perf_model.py::perf_forward[batch=8]", metric="median_s", kind="time", outcome=outcome,
        ratio=math.exp(step), ci_low=math.exp(step - 0.01), ci_high=math.exp(step + 0.01), head=0.01, log_ratios=values,
    )  # fmt: skip
    ratio = 44 / 40 if step else 1.0
    counted = Gate(
        benchmark=timed.benchmark,
        metric="operators",
        kind="counter",
        outcome="unchanged",
        ratio=ratio,
        head=40,
    )
    plain = {"trusted": True, "self_check": SELF_CHECK, "gates": [timed, counted]}
    return GuardReport(
        **{**plain, **fields, "base": Revision(ref="", sha=base), "head": Revision(ref="", sha=head)}
    )


def sha(number: int) -> str:
    return f"{number:02x}" * 20


@pytest.fixture
def keep(measured: ModuleType) -> Callable[..., Run]:
    """Store a job as the verbs do."""

    def keeping(store: Store, made: GuardReport, kind: str = "guard-record", **environment: Any) -> Run:
        taken_on = measured.ENVIRONMENT | environment
        run = new_run(
            kind,
            made.head.sha,
            to_dict(made),
            environment=taken_on,
            command=["pyrometer"],
            commit=(made.head.sha, False),
            now=datetime.now(UTC),
        )
        return store.save(run)

    return keeping


@pytest.fixture
def kept(tmp_path, keep) -> Store:
    """Twenty commits, of which the eleventh is slower by a tenth."""
    store = Store.open(tmp_path / "store")
    for number, step in enumerate(STEPS):
        keep(store, report(sha(number), sha(number + 1), step, seed=number))
    return store


@pytest.fixture
def make_report() -> Callable[..., GuardReport]:
    return report


@pytest.fixture
def commit() -> Callable[[int], str]:
    return sha
