"""The compiler's memory budget, searched by measured peaks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError, UsageError
from pyrometer.tuning.checkpointing import compiled
from pyrometer.tuning.checkpointing.plan import plan_checkpoints
from pyrometer.tuning.checkpointing.private import current_activation_budget

BACKEND = "aot_eager_decomp_partition"


@pytest.fixture(autouse=True)
def few_shares(monkeypatch):
    monkeypatch.setattr(compiled, "SHARES", (1.0, 0.5, 0.0))


def pointwise_model():
    """Much to keep between the passes that is quick to compute again."""
    layers = [part for _ in range(3) for part in (nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Tanh())]
    return nn.Sequential(*layers)


@pytest.mark.slow
def test_the_share_with_the_least_measured_peak_is_chosen_and_the_setting_restored(works):
    torch.manual_seed(0)
    x = torch.randn(512, 64)
    work = works.training(torch.compile(pointwise_model(), backend=BACKEND), nn.L1Loss(), (x, x))
    before = current_activation_budget()
    plan = plan_checkpoints(work, budget_s=1.0)
    assert current_activation_budget() == before
    assert plan.strategy == "activation-budget"
    assert plan.activation_budget < 1
    assert plan.planned.peak_bytes < 0.95 * plan.baseline.peak_bytes
    assert plan.equal.equal
    with pytest.raises(UsageError, match="activation_memory_budget = "):
        plan.apply(work.parts.model)


@pytest.mark.exhaustive
def test_shares_that_give_other_gradients_are_refused(works, monkeypatch):
    torch.manual_seed(0)
    x = torch.randn(128, 64)
    work = works.training(torch.compile(pointwise_model(), backend=BACKEND), nn.L1Loss(), (x, x))
    measure = compiled.compiled_figures

    def wrong_below_one(work, share, seed=0):
        figures = measure(work, share, seed)
        if share < 1:
            figures.results[0] = {name: value + 1 for name, value in figures.results[0].items()}
        return figures

    monkeypatch.setattr(compiled, "compiled_figures", wrong_below_one)
    plan = plan_checkpoints(work, budget_s=1.0)
    assert plan.activation_budget == 1.0
    assert sum("is refused: gradients differ" in note for note in plan.notes) == 2
    assert plan.sentence.startswith("nothing helps")


def test_strategies_of_modules_are_refused(works):
    x = torch.randn(8, 64)
    model = torch.compile(pointwise_model(), backend=BACKEND)
    work = works.training(model, nn.L1Loss(), (x, x))
    with pytest.raises(InputError, match="the compiler decides what to compute again"):
        plan_checkpoints(work, strategy="every-k")


def test_variants_that_compile_count_as_compiled():
    model = nn.Linear(4, 4)
    x = torch.randn(2, 4)
    work = pm.Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1), [(x, x)])
    assert not compiled.runs_compiled(work)
    assert compiled.runs_compiled(work.compiled())
    assert not compiled.runs_compiled(work.compiled("eager"))
