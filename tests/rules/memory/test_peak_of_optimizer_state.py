"""PYR209: what the optimizer remembers, as the largest part of the peak."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.advice.rules.optimizers import less_state
from pyrometer.rules.case import Case

CODE = "PYR209"


def training(make: Any) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Linear(512, 512)
    batches = [(torch.randn(2, 512), torch.randn(2, 512))]
    return pm.Training(model, nn.MSELoss(), make(model.parameters()), batches)


@pytest.mark.slow
def test_another_optimizer_lowers_a_real_peak_by_what_was_rehearsed(findings, recorded, rehearsed):
    adam = training(lambda tensors: torch.optim.AdamW(tensors, lr=1e-3, fused=True))
    profile = rehearsed(adam, less_state)
    evidence = Case(target="t", memory=profile, limits={f"{CODE}.min_peak_bytes": 0})
    (finding,) = findings(CODE, evidence)
    assert finding.evidence["dominates"]
    assert finding.advice.fix_class == "semantic"
    name, saves = finding.advice.sketch, finding.advice.gain.saves_bytes
    assert "Adafactor" in name or "SGD" in name
    advice = next(one for one in profile.advice if one.slug == "optimizer-sgd")
    after = recorded(training(lambda tensors: torch.optim.SGD(tensors, lr=0.1, momentum=0.9)))
    assert profile.peak_bytes - after.peak_bytes == pytest.approx(advice.saves_bytes, rel=0.2)
    assert saves >= advice.saves_bytes


def test_stale_state_is_told_even_where_it_does_not_dominate(profile, findings):
    memory = profile({"activations": 80, "optimizer": 20}, advice={"stale-optimizer-state": 20})
    (finding,) = findings(CODE, Case(target="t", memory=memory))
    assert not finding.evidence["dominates"]
    assert (finding.where.file, finding.where.line) == ("/home/user/train.py", 7)


def test_it_is_silent_where_the_state_is_a_smaller_part_or_nothing_remembers_less(profile, findings):
    smaller = profile({"activations": 80, "optimizer": 20}, advice={"optimizer-adafactor": 15})
    without = profile({"optimizer": 80, "parameters": 40})
    for memory in (smaller, without):
        assert findings(CODE, Case(target="t", memory=memory)) == []
