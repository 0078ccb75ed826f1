from __future__ import annotations

import torch
from torch import nn


class Overflows(nn.Module):
    """Its gradient is infinite in float16 whatever the scale is, and fine in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return (self.layer(x) * 60000.0).float() * 1e6


def squared(output, _target):
    return output.pow(2).mean()


def test_a_scale_that_falls_in_every_step_is_found(findings, watched, training):
    scaler = torch.amp.GradScaler("cpu")
    (finding,) = findings(
        "PYR705", watched(training(Overflows(), loss=squared, amp="float16", scaler=scaler))
    )
    assert "the loss scale falls from 65536 to 2048: 5 of 5 steps are skipped" in finding.message
    assert finding.advice.lever == "autocast_bf16"
    assert finding.cost.share == 1.0


def test_the_advice_needs_no_scale(findings, watched, training):
    evidence = watched(training(Overflows(), loss=squared, amp="bfloat16", lr=0.0))
    assert findings("PYR705", evidence) == []
    assert evidence.numerics.gradients.non_finite == []


def test_a_scale_that_settles_is_silent(findings, watched, training):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18)
    evidence = watched(training(nn.Linear(8, 4), amp="float16", scaler=scaler))
    assert evidence.numerics.scaling.skipped
    assert findings("PYR705", evidence) == []


def test_too_few_steps_tell_nothing(findings, watched, training):
    scaler = torch.amp.GradScaler("cpu")
    evidence = watched(training(Overflows(), loss=squared, amp="float16", scaler=scaler), steps=3)
    assert findings("PYR705", evidence) == []


def test_a_scale_that_has_already_fallen_is_found_sooner(findings, watched, training):
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    evidence = watched(training(Overflows(), loss=squared, amp="float16", scaler=scaler), steps=2)
    (finding,) = findings("PYR705", evidence)
    assert finding.confidence == "high"


def test_training_without_a_scaler_is_silent(findings, watched, training):
    assert findings("PYR705", watched(training(nn.Linear(8, 4)))) == []
