"""Which places of a program are cut out of its steps, and what is told of them."""

from __future__ import annotations

import math
import sys
import time

import numpy as np
import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.cutting.measuring import interval_of, measure_ceilings


def waited(x, seconds):
    """Takes a time that no other place comes near to."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return x + 1


def made(seconds):
    return waited(torch.ones(4), seconds)


def pieces(x):
    waited(x, 0.002)
    yield x


class Model(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(self.body(x))


class Slow(nn.Module):
    def forward(self, x):
        for _ in range(100):
            x = x * 2
        return x


def ceilings_of(body, **options):
    work = pm.Inference(Model(body), torch.randn(2, 4))
    return measured(work, **options)


def measured(work, **options):
    """With a budget that no busy machine uses up."""
    return measure_ceilings(work, step_s=0.002, budget_s=60, most_blocks=3, **options)


def only(result):
    assert len(result.ceilings) == 1, result
    return result.ceilings[0]


@pytest.mark.measuring
def test_the_place_that_costs_is_cut_out_and_what_only_calls_it_is_not():
    ceiling = only(ceilings_of(lambda x: waited(x, 0.002)))
    assert ceiling.where.function == "waited", ceilings_of(lambda x: waited(x, 0.002))
    assert ceiling.where.line == waited.__code__.co_firstlineno
    assert ceiling.last_line == ceiling.where.line + 5
    assert (ceiling.what, ceiling.calls_per_step) == ("function", 1)
    assert ceiling.ratio_low <= ceiling.ratio <= ceiling.ratio_high
    assert ceiling.pairs >= 6
    assert not ceiling.same_inputs


@pytest.mark.measuring
def test_what_is_the_same_in_each_step_is_told():
    result = ceilings_of(lambda x: x + made(0.002))
    assert [c.where.function for c in result.ceilings if c.same_inputs and c.same_results] == ["waited"]


@pytest.mark.measuring
def test_a_module_is_named_by_its_path():
    assert [(c.what, c.where.module) for c in ceilings_of(Slow()).ceilings] == [("module", "body")]


@pytest.mark.measuring
def test_a_generator_stays_and_a_note_says_why():
    result = ceilings_of(lambda x: sum(pieces(x)))
    assert "it is a generator" in str(result.notes)
    assert "pieces" not in {ceiling.where.function for ceiling in result.ceilings}


def test_without_functions_only_the_loader_is_cut_out():
    assert ceilings_of(lambda x: waited(x, 0.002), functions=False).ceilings == []


class Batches:
    def __iter__(self):
        for _ in range(5):
            yield waited(torch.randn(2, 4), 0.002), torch.randn(2, 4)


@pytest.mark.measuring
def test_the_loader_is_cut_out():
    model = nn.Linear(4, 4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    work = pm.Training(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1), Batches())
    result = measured(work)
    loader = next(ceiling for ceiling in result.ceilings if ceiling.what == "loader")
    assert loader.where.phase == "data"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.measuring
def test_a_program_that_cannot_do_without_a_place_keeps_it():
    kept = []

    def fill(x):
        waited(x, 0.001)
        kept.append(x)

    def body(x):
        kept.clear()
        fill(x)
        return kept[0]

    result = ceilings_of(body)
    assert "fill" not in {str(c.where.function).rpartition(".")[2] for c in result.ceilings}
    assert any("without it the step raises IndexError" in note for note in result.notes) or result.ceilings


def test_steps_longer_than_the_budget_are_left_alone():
    work = pm.Inference(nn.Linear(4, 4), torch.randn(2, 4))
    result = measure_ceilings(work, step_s=3.0, budget_s=2.0)
    assert result.ceilings == []
    assert "with 3.00 s a step that takes 51.0 s, and 2.00 s are left for it" in result.notes[0]


def test_another_profiler_is_left_in_place():
    def profiler(*_):
        return None

    sys.setprofile(profiler)
    try:
        result = ceilings_of(lambda x: waited(x, 0.001))
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert "another profiler" in result.notes[0]


def test_a_step_that_raises_costs_the_ceilings_and_no_more():
    def body(x):
        raise RuntimeError("no")

    result = ceilings_of(body)
    assert result.ceilings == []
    assert "a step raised RuntimeError: no" in result.notes[0]


@pytest.mark.parametrize("number", [3, 5, 6, 24])
def test_intervals_hold_what_they_promise(number):
    random = np.random.default_rng(number)
    held = [
        low <= -0.5 <= high
        for low, high in (interval_of(random.normal(-0.5, 0.05, number))[1:] for _ in range(400))
    ]
    assert np.mean(held) > 0.92
    assert all(map(math.isfinite, interval_of(random.normal(-0.5, 0.05, number))))


@pytest.mark.measuring
def test_the_ceiling_is_what_remains_without_the_place():
    assert only(ceilings_of(lambda x: waited(x, 0.002))).ratio < 0.5
