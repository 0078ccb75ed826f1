"""The largest batch fits, and the next one does not."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.memory.prediction.fits import CARDS_GIB, MOST, largest, largest_batch_that_fits
from pyrometer.memory.prediction.predict import predict_memory


@given(answer=st.integers(0, 3000), guess=st.integers(1, 3000), step=st.integers(0, 5))
def test_the_search_finds_the_edge_from_any_guess(answer, guess, step):
    tried = []
    found = largest(lambda n: tried.append(n) or n <= answer, guess, step=step, most=2500)
    assert found == min(answer, 2500)
    assert all(1 <= n <= 2500 for n in tried)


def test_a_good_guess_costs_two_tries():
    tried = []
    assert largest(lambda n: tried.append(n) or n <= 37, 37, step=1) == 37
    assert tried == [37, 38]


@pytest.mark.slow
def test_the_answer_is_the_largest_batch_in_whichever_phase_the_peak_is_then(mlp):
    small = predict_memory(mlp())
    budgets = [small.peak_bytes * factor for factor in (1, 3, 20)]
    for fit in largest_batch_that_fits(mlp(), budgets):
        assert fit.verified
        at, beyond = (predict_memory(mlp(), batch=fit.max_batch + more) for more in (0, 1))
        assert at.peak_bytes == fit.peak_bytes <= fit.budget_bytes < beyond.peak_bytes
    assert small.peak_phase == "optimizer"
    assert at.peak_phase != "optimizer"


def test_a_budget_below_one_sample_has_no_batch(mlp):
    [fit] = largest_batch_that_fits(mlp(), [1000])
    assert fit.max_batch is None
    assert fit.peak_bytes is None


@pytest.mark.slow
def test_settings_change_the_answer(mlp):
    [plain] = largest_batch_that_fits(mlp(), [2**20])
    [less] = largest_batch_that_fits(mlp(), [2**20], optimizer="SGD")
    [cuda] = largest_batch_that_fits(mlp(), [2**30], device="cuda")
    [cpu] = largest_batch_that_fits(mlp(), [2**30])
    assert less.max_batch > plain.max_batch
    assert cuda.max_batch < cpu.max_batch  # the context is of the device's memory too


def test_a_program_that_does_otherwise_at_other_batches_is_searched_by_rehearsals():
    class Chunked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 64)

        def forward(self, x):
            return torch.cat([self.layer(part) for part in x.split(8)])

    model = Chunked()
    x = torch.randn(16, 64)
    work = pm.Training(model, functional.mse_loss, torch.optim.SGD(model.parameters()), [(x, x)])
    [fit] = largest_batch_that_fits(work, [predict_memory(work, batch=43).peak_bytes])
    assert fit.max_batch == 43
    assert fit.verified


def test_budgets_are_those_of_the_device_and_of_common_cards(mlp):
    largest_batch = largest_batch_that_fits(mlp(width=512), time_limit_s=0.0)
    assert {gib << 30 for gib in CARDS_GIB} < {fit.budget_bytes for fit in largest_batch}
    assert all(fit.max_batch and not fit.verified for fit in largest_batch)


def test_what_does_not_grow_has_no_largest_batch():
    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x, table):
            return self.weight * table

    inputs = (torch.zeros(4, 0), torch.ones(4))
    [fit] = largest_batch_that_fits(pm.Inference(Constant(), inputs), [2**20], dims={"x": {0: "B"}})
    assert fit.max_batch is None
    assert fit.peak_bytes == 48  # weight, table and result, at every batch


def test_where_the_search_ends_by_itself_the_answer_is_the_least_that_fits(mlp):
    [capped, fit] = largest_batch_that_fits(mlp(), [2**50, 2**20])
    assert (capped.max_batch, capped.is_capped, capped.verified) == (MOST, True, False)
    assert (fit.is_capped, fit.verified) == (False, True)


@pytest.mark.parametrize("budget", [0, -1, 1.5, True])
def test_illegal_budgets_are_told(mlp, budget):
    with pytest.raises(InputError, match="budgets_bytes: got"):
        largest_batch_that_fits(mlp(), [budget])
