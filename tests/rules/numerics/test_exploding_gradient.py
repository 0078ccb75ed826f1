from __future__ import annotations

import torch
from torch import nn


class Clipped(torch.optim.SGD):
    """Does what the advice says before each step."""

    def step(self, closure=None):
        for group in self.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], max_norm=1.0)
        return super().step(closure)


def regression(training, lr, **options):
    return training(nn.Linear(8, 1), loss=nn.MSELoss(), target=torch.randn(16, 1), lr=lr, **options)


def test_a_norm_that_grows_in_every_step_is_found(findings, watched, training):
    (finding,) = findings("PYR703", watched(regression(training, lr=5.0)))
    assert finding.message.startswith("the gradient's norm grows ")
    assert "and in each of them" in finding.message
    assert "clip_grad_norm_" in finding.advice.sketch
    assert finding.evidence["growth"] > 100


def test_the_advice_keeps_it_in_bounds(findings, watched, training):
    work = regression(training, lr=5.0)
    optimizer = Clipped(work.parts.model.parameters(), lr=0.05)
    mended = type(work)(work.parts.model, nn.MSELoss(), optimizer, work.batches)
    assert findings("PYR703", watched(mended)) == []


def test_steep_layers_are_found_over_depth(findings, watched, training):
    class Steep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            return torch.sin(50 * self.layer(x))

    model = nn.Sequential(*[Steep() for _ in range(12)], nn.Linear(8, 4))
    (finding,) = findings("PYR703", watched(training(model, lr=0.0)))
    assert "from the last layers to the first" in finding.message


def test_gradients_far_above_the_weights_are_found(findings, watched, training):
    def summed(output, _target):
        return output.sum() * 1e5

    (finding,) = findings("PYR703", watched(training(nn.Linear(8, 4), loss=summed, lr=0.0)))
    assert "times that of the weights" in finding.message


def test_sound_training_is_silent(findings, watched, training):
    assert findings("PYR703", watched(training(nn.Linear(8, 4)))) == []
    assert findings("PYR703", watched(regression(training, lr=0.05))) == []


def test_a_deep_network_at_its_usual_start_is_silent(findings, watched, training):
    layers = [layer for _ in range(10) for layer in (nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU())]
    assert findings("PYR703", watched(training(nn.Sequential(*layers, nn.Linear(8, 4))))) == []
