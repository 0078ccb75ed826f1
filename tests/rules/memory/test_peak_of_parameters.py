"""PYR219: weights in float32 as the largest part of the peak."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.advice.rules.precision import low_precision_parameters
from pyrometer.rules.case import Case

CODE = "PYR219"


def inference(dtype: torch.dtype) -> pm.Inference:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)]).to(dtype)
    return pm.Inference(model, torch.randn(1, 256, dtype=dtype))


@pytest.mark.slow
def test_half_of_a_real_peak_goes_with_two_bytes_per_weight(findings, recorded, rehearsed):
    profile = rehearsed(inference(torch.float32), low_precision_parameters)
    (finding,) = findings(CODE, Case(target="t", memory=profile, limits={f"{CODE}.min_peak_bytes": 0}))
    assert finding.evidence["dominates"]
    after = recorded(inference(torch.bfloat16))
    scratch_bytes = 2 * 256 * 256  # a product in bfloat16 on the CPU may copy a weight
    saved = profile.peak_bytes - after.peak_bytes
    assert saved == pytest.approx(finding.advice.gain.saves_bytes, abs=scratch_bytes)
    assert finding.advice.fix_class == "semantic"


@pytest.mark.parametrize(
    ("ledger", "advice"),
    [
        ({"parameters": 40, "temporaries": 60}, {"bf16-parameters": 50}),
        ({"parameters": 90}, {}),
        ({"parameters": 20}, {"bf16-parameters": 10}),
    ],
)
def test_it_is_silent_elsewhere(findings, profile, ledger, advice):
    assert findings(CODE, Case(target="t", memory=profile(ledger, advice=advice))) == []
