"""Gradients: what is not finite, over depth and over steps, and under a GradScaler."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from pyrometer.numerics.gradients import read_gradients
from pyrometer.numerics.watch import watch_numerics


class RootAtZero(nn.Module):
    """Fine forward; its slope at zero is infinite."""

    def forward(self, x):
        return torch.sqrt(x - x.detach()) + x


def deep(activation: type[nn.Module], gain: float | None = None) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(12):
        layer = nn.Linear(8, 8)
        if gain is not None:
            nn.init.orthogonal_(layer.weight, gain)
        layers += [layer, activation()]
    return nn.Sequential(*layers, nn.Linear(8, 4))


def test_the_backward_operator_that_is_at_fault_is_told_by_its_forward_line(training, line_of):
    model = nn.Sequential(nn.Linear(8, 8), RootAtZero(), nn.Linear(8, 4))
    numerics = watch_numerics(training(model), steps=1)
    first = numerics.gradients.non_finite[0]
    assert first.parameter.startswith("0.")
    assert not first.all_skipped
    place = first.origin.overflow or first.origin.origin
    assert "SqrtBackward0" in place.op
    assert (place.module, place.phase) == ("1", "backward")
    assert place.line == line_of(RootAtZero.forward, "sqrt")
    assert {one.parameter for one in numerics.gradients.non_finite} == {"0.weight", "0.bias"}
    assert numerics.gradients.norms == [None]


def test_sigmoids_one_after_the_other_let_gradients_vanish(training):
    ratio = watch_numerics(training(deep(nn.Sigmoid))).gradients.depth_ratio
    assert ratio > 1e4


def test_residuals_keep_them(training):
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            return x + torch.relu(self.layer(x))

    model = nn.Sequential(*[Block() for _ in range(12)], nn.Linear(8, 4))
    assert 0.01 < watch_numerics(training(model)).gradients.depth_ratio < 100


def test_steep_layers_let_gradients_explode_on_the_way_back(training):
    class Steep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            return torch.sin(50 * self.layer(x))

    model = nn.Sequential(*[Steep() for _ in range(12)], nn.Linear(8, 4))
    assert watch_numerics(training(model, lr=0.0)).gradients.depth_ratio < 1e-3


def test_large_weights_give_gradients_far_above_the_weights(training):
    gradients = watch_numerics(training(deep(nn.Identity, gain=4.0), lr=0.0)).gradients
    assert gradients.norms[0] > 1e4 * gradients.weight_norm


def test_a_diverging_run_has_growing_gradients(training):
    model = nn.Linear(8, 1)
    numerics = watch_numerics(training(model, loss=nn.MSELoss(), target=torch.randn(16, 1), lr=5.0))
    assert numerics.gradients.trend == "growing"
    assert numerics.gradients.growth > 100


def test_a_sound_run_has_not(training):
    numerics = watch_numerics(training(nn.Linear(8, 4)))
    assert numerics.gradients.trend == "steady"
    assert numerics.gradients.depth_ratio is None  # one layer has no depth


def test_layers_come_in_the_order_in_which_they_run(training):
    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(8, 4)
            self.first = nn.Linear(8, 8)

        def forward(self, x):
            return self.last(self.first(x))

    numerics = watch_numerics(training(Backwards()), steps=2)
    assert [layer.module for layer in numerics.gradients.layers] == ["first", "last"]
    assert all(len(layer.rms) == 2 for layer in numerics.gradients.layers)


def test_norms_are_those_of_torch(training):
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))
    work = training(model, lr=0.0)
    numerics = watch_numerics(work, steps=1)
    x, y = work.batches[0]
    nn.functional.cross_entropy(model(x), y).backward()
    expected = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    assert numerics.gradients.norms[0] == pytest.approx(float(expected), rel=1e-5)
    model.zero_grad()


def test_a_scale_that_is_too_large_falls_until_it_fits(training):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    numerics = watch_numerics(training(nn.Linear(8, 4), amp="float16", scaler=scaler), steps=3)
    assert numerics.scaling.skipped == [0, 1, 2]
    assert numerics.scaling.scales == [2.0**40, 2.0**39, 2.0**38]
    assert numerics.scaling.final_scale == 2.0**37
    assert all(one.all_skipped for one in numerics.gradients.non_finite)
    assert scaler.get_scale() == 2.0**40


def test_norms_are_told_without_the_scale(training):
    model = nn.Linear(8, 4)
    plain = watch_numerics(training(model, lr=0.0), steps=1).gradients.norms[0]
    torch.manual_seed(0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    torch.manual_seed(0)
    model = nn.Linear(8, 4)
    scaled = watch_numerics(training(model, lr=0.0, scaler=scaler), steps=1)
    assert scaled.gradients.norms[0] == pytest.approx(plain, rel=1e-5)
    assert scaled.scaling.skipped == []


def test_complex_parameters_count_with_the_magnitude_of_their_numbers(training):
    class Spectral(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8, 4, dtype=torch.complex64))

        def forward(self, x):
            return (x.to(torch.complex64) @ self.weight).abs()

    model = Spectral()
    weight = model.weight.detach().clone()
    work = training(model, lr=0.0)
    gradients = watch_numerics(work, steps=1).gradients
    assert gradients.weight_norm == pytest.approx(float(weight.abs().square().sum().sqrt()), rel=1e-5)
    assert gradients.norms[0] > 0
    assert gradients.non_finite == []


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_complex_gradient_that_is_not_finite_is_told(value):
    parameter = torch.ones(3, dtype=torch.complex64)
    parameter.grad = torch.tensor([1 + 1j, complex(0, value), 0j])
    step = read_gradients({"weight": parameter})
    assert step.bad == ["weight"]
    assert step.nans == ({"weight"} if math.isnan(value) else set())
