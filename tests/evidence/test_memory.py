"""How many steps a check watches for memory that stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.memory import memory_use
from pyrometer.bench.quality import CaveatCode, caveat
from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.observers.memory import FEWEST_STEPS, MOST_STEPS, leak_steps_of
from pyrometer.evidence.observers.memory import observe as observe_memory
from pyrometer.evidence.options import ObserveOptions
from pyrometer.rules.case import Case
from pyrometer.rules.explain import findings_of
from pyrometer.rules.registry import select

BUDGET_S = 5.0
Measured = Callable[[float, int], Measurement]


class Keeping(nn.Module):
    """Keeps every output, with its graph."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64)
        self.kept: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.layer(x))
        self.kept.append(h)
        return h


def leaking() -> pm.Workload:
    model = Keeping()
    batch = (torch.randn(32, 64), torch.randn(32, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return pm.Training(model, nn.functional.mse_loss, optimizer, [batch])


@pytest.fixture(scope="module")
def measured() -> Measured:
    """A measurement whose step and growth per step are given."""
    real = pm.measure(pm.Inference(nn.Linear(2, 2), torch.ones(1, 2)), budget_s=0.2)

    def give(step_s: float, growth: int) -> Measurement:
        steps = list(range(20))
        memory = memory_use("cpu", steps, [10**8 + growth * step for step in steps], 2 * 10**8)
        return msgspec.structs.replace(real, median_s=step_s, memory=memory)

    return give


def test_quick_steps_are_watched_whether_memory_grows_or_not(measured: Measured) -> None:
    assert leak_steps_of(measured(0.001, 0), BUDGET_S) == (MOST_STEPS, [])
    assert leak_steps_of(measured(0.001, 10**6), BUDGET_S) == (MOST_STEPS, [])


def test_slower_steps_are_watched_just_where_memory_grows(measured: Measured) -> None:
    assert leak_steps_of(measured(0.05, 0), BUDGET_S) == (0, [])
    assert leak_steps_of(measured(0.05, 10**6), BUDGET_S) == (FEWEST_STEPS, [])


def test_growth_that_would_take_too_long_to_watch_is_told_with_the_budget_that_allows_it(
    measured: Measured,
) -> None:
    slow = measured(1.0, 10**6)
    steps, notes = leak_steps_of(slow, BUDGET_S)
    assert steps == 0
    assert (
        "24 watched steps, each about 4 times as long while it is recorded, would take 1 min 36 s" in notes[0]
    )
    assert notes[0].endswith("allow them with --budget 96s")
    assert leak_steps_of(slow, 96.0) == (FEWEST_STEPS, [])
    more = caveat(CaveatCode("few_samples"), "few", "run `pyrometer check a.py:b --budget 170s`", 170.0)
    _, notes = leak_steps_of(msgspec.structs.replace(slow, warnings=[more]), BUDGET_S)
    assert notes[0].endswith("allow them with --budget 170s")  # one figure, enough for both
    assert leak_steps_of(measured(1.0, 0), BUDGET_S) == (0, [])


@pytest.mark.slow
def test_a_model_that_keeps_its_outputs_is_an_error_also_where_its_steps_are_slow(measured: Measured) -> None:
    before = Observed(evidence=Evidence(target="t", measurement=measured(0.05, 10**6)))
    evidence = observe_memory(leaking(), before, ObserveOptions(budget_s=BUDGET_S)).evidence
    assert evidence.notes == []
    (finding,) = findings_of(Case(target="t", memory=evidence.memory), select(["PYR217"]))
    assert finding.severity == "error"
    assert "kept" in finding.message
    assert Path(finding.where.file or "").name == "test_memory.py"
