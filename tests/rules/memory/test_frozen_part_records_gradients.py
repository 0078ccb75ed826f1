"""PYR220: what autograd records though nothing trains it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.advice.rules.recording import untrained_parameters
from pyrometer.rules.case import Case

CODE = "PYR220"


class Split(nn.Module):
    """A trunk that is not trained, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
        self.head = nn.Linear(128, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.trunk(x))


def training(frozen: bool) -> pm.Training:
    torch.manual_seed(0)
    model = Split()
    model.trunk.requires_grad_(not frozen)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    return pm.Training(model, nn.MSELoss(), optimizer, [(torch.randn(64, 128), torch.randn(64, 4))])


@pytest.mark.slow
def test_freezing_what_is_not_trained_lowers_a_real_peak_by_what_was_rehearsed(findings, recorded, rehearsed):
    profile = rehearsed(training(frozen=False), untrained_parameters)
    finding = next(iter(findings(CODE, Case(target="t", memory=profile))))
    after = recorded(training(frozen=True))
    assert profile.peak_bytes - after.peak_bytes == pytest.approx(finding.advice.gain.saves_bytes, rel=0.2)
    assert "requires_grad_" in finding.advice.sketch
    frozen = rehearsed(training(frozen=True), untrained_parameters)
    assert findings(CODE, Case(target="t", memory=frozen)) == []


def test_it_is_silent_about_small_savings(findings, profile):
    memory = profile({"activations": 100}, advice={"freeze-untrained": 4})
    assert findings(CODE, Case(target="t", memory=memory)) == []


def test_a_batch_that_wants_gradients_is_told(findings, profile):
    memory = profile({"activations": 100}, advice={"no-grad-trunk": 40})
    (finding,) = findings(CODE, Case(target="t", memory=memory))
    assert finding.advice.gain.saves_bytes == 40 * 2**20
