from __future__ import annotations

import torch
from torch import nn


class Distance(nn.Module):
    def __init__(self, *, sound: bool) -> None:
        super().__init__()
        self.layer, self.sound = nn.Linear(8, 8), sound

    def forward(self, x):
        a = self.layer(x)
        b = self.layer(x)
        if self.sound:
            return torch.linalg.vector_norm(a - b, dim=-1)
        return torch.sqrt(((a - b) ** 2).sum(-1))


def mean(output, _target):
    return output.mean()


def test_the_root_at_zero_is_found_and_the_advice_mends_it(findings, watched, training):
    (finding,) = findings("PYR702", watched(training(Distance(sound=False), loss=mean), steps=1))
    assert finding.severity == "error"
    assert "SqrtBackward0" in finding.message
    assert finding.where.line == Distance.forward.__code__.co_firstlineno + 5
    assert "root" in finding.advice.text
    assert findings("PYR702", watched(training(Distance(sound=True), loss=mean), steps=1)) == []


def test_what_follows_from_the_loss_is_told_once(findings, watched, training):
    def log_of_zero(output, _target):
        return torch.log(output.sum() * 0)

    evidence = watched(training(nn.Linear(8, 4), loss=log_of_zero), steps=2)
    assert findings("PYR702", evidence) == []
    assert len(findings("PYR701", evidence)) == 1


def test_steps_that_a_scaler_skips_while_its_scale_is_too_large_are_silent(findings, watched, training):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18)
    evidence = watched(training(nn.Linear(8, 4), amp="float16", scaler=scaler))
    assert evidence.numerics.scaling.skipped
    assert findings("PYR702", evidence) == []


def test_nan_that_no_scale_mends_is_told(findings, watched, training):
    class Bad(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 4)

        def forward(self, x):
            h = self.layer(x)
            return self.head(torch.sqrt(h - h.detach()) + x)

    scaler = torch.amp.GradScaler("cpu")
    (finding,) = findings("PYR702", watched(training(Bad(), scaler=scaler), steps=2))
    assert finding.evidence["skipped_by_scaler"] is True
    assert finding.confidence == "medium"


def test_sound_training_is_silent(findings, watched, training):
    assert findings("PYR702", watched(training(nn.Linear(8, 4)))) == []
