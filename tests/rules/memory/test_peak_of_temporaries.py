"""PYR210: short-lived results at the peak, and the one source of them that is known."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.advice.rules.optimizers import implementation
from pyrometer.rules.case import Case

CODE = "PYR210"


def training(**options: bool) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **options)
    return pm.Training(model, nn.MSELoss(), optimizer, [(torch.randn(2, 256), torch.randn(2, 256))])


@pytest.mark.slow
def test_a_fused_optimizer_lowers_a_real_peak_by_what_was_rehearsed(findings, recorded, rehearsed):
    profile = rehearsed(training(foreach=True), implementation)
    (finding,) = findings(CODE, Case(target="t", memory=profile, limits={f"{CODE}.min_peak_bytes": 0}))
    assert finding.advice.lever == "fused_optimizer"
    assert "fused=True" in finding.advice.sketch
    after = recorded(training(fused=True))
    assert profile.peak_bytes - after.peak_bytes == pytest.approx(finding.advice.gain.saves_bytes, rel=0.2)


@pytest.mark.parametrize("slug", ["chunked-cross-entropy", "clone-scalar-loss"])
def test_a_wasteful_loss_is_told_where_temporaries_do_not_dominate(profile, findings, slug):
    memory = profile({"activations": 80, "temporaries": 20}, advice={slug: 30})
    (finding,) = findings(CODE, Case(target="t", memory=memory))
    assert finding.advice.gain.saves_bytes == 30 * 2**20
    assert finding.links[-1] == "/memory/advice/0"


def test_it_is_silent_about_smaller_parts_and_small_savings(profile, findings):
    general = profile({"activations": 80, "temporaries": 20}, advice={"micro-batching": 50})
    hardly = profile({"temporaries": 90, "parameters": 10}, advice={"optimizer-implementation": 2})
    for memory in (general, hardly):
        assert findings(CODE, Case(target="t", memory=memory)) == []
