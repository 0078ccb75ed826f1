from __future__ import annotations

import torch
from torch import nn

import pyrometer as pm


class Rounded(nn.Module):
    """Adds many small numbers one after the other: in bfloat16 the sum stands still long before the end."""

    def __init__(self, *, wide: bool) -> None:
        super().__init__()
        self.layer, self.wide = nn.Linear(8, 8), wide

    def forward(self, x):
        h = self.layer(x)
        total = h.float() if self.wide else h
        small = torch.tensor(0.001, dtype=total.dtype)
        for _ in range(500):
            total = total + small
        return total


def test_a_drift_is_found_and_float32_in_that_place_mends_it(findings, watched):
    x = torch.randn(64, 8, dtype=torch.bfloat16)
    (finding,) = findings("PYR709", watched(pm.Inference(Rounded(wide=False).bfloat16(), x), steps=1))
    assert "a quantile is off by" in finding.message
    assert finding.evidence["quantile_shift_in_std"] > 0.05
    assert findings("PYR709", watched(pm.Inference(Rounded(wide=True).bfloat16(), x), steps=1)) == []


def test_rounding_that_drifts_nowhere_is_silent(findings, watched):
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).bfloat16()
    work = pm.Inference(model, torch.randn(256, 8, dtype=torch.bfloat16))
    assert findings("PYR709", watched(work, steps=1)) == []


def test_a_model_in_float32_is_silent(findings, watched):
    assert findings("PYR709", watched(pm.Inference(nn.Linear(8, 4), torch.randn(4, 8)), steps=1)) == []
