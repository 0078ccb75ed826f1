"""Where a model draws random numbers, its outputs are held to what other seeds make of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.tuning.trials.gate import Limits, judge
from pyrometer.tuning.trials.results import RANDOM, check_learning, check_outputs, save_learning, save_outputs


class Noisy(nn.Module):
    """Adds noise of a size to what it computes, drawn in one of two orders; and may be off by a factor."""

    def __init__(self, noise, *, reverses=False, factor=1.0):
        super().__init__()
        self.noise, self.reverses, self.factor = noise, reverses, factor

    def forward(self, x):
        drawn = torch.randn(x.shape)
        return x * self.factor + self.noise * (drawn.flip(0) if self.reverses else drawn)


class Choosing(nn.Module):
    """Samples whole numbers, or takes the largest."""

    def __init__(self, *, samples, shift=0):
        super().__init__()
        self.samples, self.shift = samples, shift

    def forward(self, x):
        if self.samples:
            return torch.multinomial(x.softmax(-1), 1)
        return x.argmax(-1) + self.shift, x + torch.randn(x.shape)


def numerics(reference, changed, place):
    torch.manual_seed(0)
    works = [pm.Inference(model, torch.randn(64, 16)) for model in (reference, changed)]
    with works[0].open() as session:
        save_outputs(works[0], session, 0, place)
    with works[1].open() as session:
        return judge(check_outputs(session, 0, place, fixed_shapes=False), "tolerance", Limits())


@pytest.mark.parametrize("noise", [1e-8, 0.01, 1.0])
def test_what_draws_the_same_numbers_is_held_to_them(noise, tmp_path):
    checked = numerics(Noisy(noise), Noisy(noise), tmp_path / "kept")
    assert checked.passes
    assert checked.max_abs == 0


@pytest.mark.parametrize(("noise", "said"), [(0.01, None), (1.0, RANDOM)])
def test_what_draws_in_another_order_is_not_refused_and_told_as_checked_only_where_it_is_near(
    noise, said, tmp_path
):
    checked = numerics(Noisy(noise), Noisy(noise, reverses=True), tmp_path / "kept")
    assert checked.passes
    assert {case.skipped for case in checked.cases if case.label == "as given"} == {said}


def test_noise_that_nobody_would_see_does_not_open_the_gate(tmp_path):
    checked = numerics(Noisy(1e-8), Noisy(1e-8, reverses=True, factor=1.1), tmp_path / "kept")
    assert "off by" in checked.refused


def test_what_leads_farther_than_any_seed_is_refused(tmp_path):
    checked = numerics(Noisy(0.01), Noisy(0.01, reverses=True, factor=0.0), tmp_path / "kept")
    assert "from itself" in checked.refused


def test_what_is_no_number_is_refused_also_of_a_random_model(tmp_path):
    checked = numerics(Noisy(1.0), Noisy(1.0, factor=float("nan")), tmp_path / "kept")
    assert not checked.passes


def test_classes_that_are_sampled_are_not_compared(tmp_path):
    shuffled = nn.Sequential(Choosing(samples=True), nn.Identity())
    shuffled.forward = lambda x: torch.multinomial(x.flip(0).softmax(-1), 1).flip(0)
    checked = numerics(Choosing(samples=True), shuffled, tmp_path / "kept")
    assert checked.passes


def test_classes_that_are_not_sampled_count_beside_random_numbers(tmp_path):
    checked = numerics(Choosing(samples=False), Choosing(samples=False, shift=1), tmp_path / "kept")
    assert "whole numbers differ" in checked.refused


def a_training(scale=1.0, noise=0.1):
    """Its losses differ from run to run, whatever the seed."""
    torch.manual_seed(0)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    own = torch.Generator().manual_seed(0)

    def loss(output, labels):
        return scale * (nn.functional.cross_entropy(output, labels) + noise * torch.rand((), generator=own))

    return pm.Training(model, loss, optimizer, [(torch.randn(8, 16), torch.randint(0, 4, (8,)))])


@pytest.mark.parametrize(("scale", "refused"), [(1.0, False), (50.0, True), (float("nan"), True)])
def test_a_random_training_is_held_to_how_far_it_is_from_itself(tmp_path, scale, refused):
    save_learning(a_training(), 0, tmp_path / "kept")
    cases = check_learning(a_training(scale), 0, tmp_path / "kept")
    assert judge(cases, "exact", Limits()).passes is not refused
    assert (cases[0].skipped is None) is refused
