"""PYR508: batch norms that their convolution could hold."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training

CODE = "PYR508"
X = torch.randn(2, 3, 32, 32)


def block() -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16)
    )
    for part in model:
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
    return model


def test_pairs_are_told_with_the_time_of_batch_norm(observe: Any, only: Any) -> None:
    evidence = observe(Inference(block(), X), "trace", "program")
    finding = only(
        CODE, replace(evidence, limits={f"{CODE}.min_share": 0.0, f"{CODE}.serious_share": 0.0})
    )  # whatever else the machine does
    assert finding.evidence["pairs"] == ["0 1", "3 4"]
    assert finding.severity == "warning"
    assert finding.cost.share > 0
    assert finding.advice.gain.ratio_low < finding.advice.gain.ratio_high < 1
    assert finding.advice.lever == "fold_batchnorm"


def test_batch_norm_that_takes_next_to_nothing_is_left_alone(
    observe: Any, traced: Any, builder: Any, findings: Any, only: Any
) -> None:
    builder.op("aten::mkldnn_convolution", 0, 990)
    builder.op("aten::batch_norm", 990, 10)
    program = observe(Inference(block(), X), "program").program
    evidence = traced(builder, program=program)
    finding = only(CODE, evidence)
    assert finding.cost.share == pytest.approx(0.01)
    assert finding.severity == "info"
    assert findings(CODE, replace(evidence, limits={f"{CODE}.min_share": 0.02})) == []


class Skips(nn.Module):
    """The convolution's output is read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return self.norm(y) + y


class Late(Skips):
    """Something stands between the two."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x).relu())


class Shared(Skips):
    """The convolution is called twice."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x)) + self.conv(x).sum()


def test_outputs_that_others_read_or_change_are_left_alone(observe: Any, findings: Any) -> None:
    for model in (Skips(), Late(), Shared()):
        assert findings(CODE, observe(Inference(model, X), "program")) == []


def test_norms_of_the_batch_itself_and_trainings_are_left_alone(observe: Any, findings: Any) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, track_running_stats=False))
    assert findings(CODE, observe(Inference(model, X), "program")) == []
    trained = nn.Sequential(block(), nn.Flatten(), nn.Linear(16 * 28 * 28, 2))
    work = Training(
        trained,
        nn.functional.mse_loss,
        torch.optim.SGD(trained.parameters(), lr=0.1),
        [(X, torch.zeros(2, 2))],
    )
    assert findings(CODE, observe(work, "program")) == []


def test_the_rewrite_gives_the_same_with_fewer_operators(observe: Any, only: Any, findings: Any) -> None:
    model = block().eval()
    before = copy.deepcopy(model)(X)
    line = only(CODE, observe(Inference(model, X), "program")).advice.sketch
    exec(line, {"model": model, "fuse_conv_bn_eval": fuse_conv_bn_eval, "nn": nn})
    torch.testing.assert_close(model(X), before, rtol=1e-4, atol=1e-5)
    left = only(CODE, observe(Inference(model, X), "program"))
    assert left.evidence["pairs"] == ["3 4"]
    exec(left.advice.sketch, {"model": model, "fuse_conv_bn_eval": fuse_conv_bn_eval, "nn": nn})
    torch.testing.assert_close(model(X), before, rtol=1e-4, atol=1e-5)
    assert findings(CODE, observe(Inference(model, X), "program")) == []
