from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import pyrometer as pm


class OwnSoftmax(nn.Module):
    def forward(self, x):
        e = torch.exp(x)
        return e / e.sum(-1, keepdim=True)


class Advised(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


class Hidden(nn.Module):
    """The bad values are not chosen, so that the result is finite, and its gradient is not."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.inverse, self.head = nn.Linear(8, 8), Inverse(), nn.Linear(8, 4)

    def forward(self, x):
        h = self.layer(x)
        bad = self.inverse(h - h.detach())
        return self.head(torch.where(bad.isnan(), h, bad))


class Inverse(nn.Module):
    def forward(self, x):
        return x / x


def test_an_overflow_is_told_with_its_line_and_the_advice_mends_it(findings, watched):
    x = torch.full((4, 8), 200.0)
    (finding,) = findings("PYR701", watched(pm.Inference(OwnSoftmax(), x)))
    assert finding.severity == "error"
    assert finding.message.startswith(
        "the output is NaN in 5 of 5 steps: aten::exp (test_non_finite_output.py:"
    )
    assert finding.where.file == __file__
    assert finding.where.line == OwnSoftmax.forward.__code__.co_firstlineno + 1
    assert "maximum" in finding.advice.text
    assert findings("PYR701", watched(pm.Inference(Advised(), x))) == []


def test_a_broken_input_is_named(findings, watched):
    x = torch.randn(4, 8)
    x[0, 0] = math.nan
    (finding,) = findings("PYR701", watched(pm.Inference(nn.Linear(8, 4), x)))
    assert "input 0 holds it already" in finding.message
    assert "clean the data" in finding.advice.text


def test_a_broken_parameter_is_named(findings, watched, training):
    model = nn.Linear(8, 4)
    with torch.no_grad():
        model.weight.fill_(math.nan)
    (finding,) = findings("PYR701", watched(training(model), steps=2))
    assert "the loss is NaN in 2 of 2 steps: parameter weight" in finding.message
    assert "checkpoint" in finding.advice.text


def test_values_that_the_result_does_not_hold_are_worth_a_warning_in_training_only(
    findings, watched, training
):
    (finding,) = findings("PYR701", watched(training(Hidden(), lr=0.0), steps=1))
    assert finding.severity == "warning"
    assert "that its result does not" in finding.message
    (found,) = findings("PYR701", watched(pm.Inference(Hidden(), torch.randn(2, 8)), steps=1))
    assert found.severity == "info"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masked_attention_is_silent(findings, watched, dtype):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(dtype)
    mask = nn.Transformer.generate_square_subsequent_mask(6, dtype=dtype)
    work = pm.Inference(layer, (torch.randn(2, 6, 8, dtype=dtype), mask))
    assert findings("PYR701", watched(work, steps=2)) == []


def test_scores_that_are_masked_in_the_output_are_silent(findings, watched):
    class Actions(nn.Module):
        def forward(self, x):
            return x.masked_fill(x < 0, -math.inf)

    assert findings("PYR701", watched(pm.Inference(Actions(), torch.randn(4, 8)), steps=1)) == []
