"""PYR512: optimizers that update operator by operator."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from msgspec.structs import replace
from torch import nn
from torch.nn import functional

from pyrometer.bench.measurement import PhaseTime
from pyrometer.rules.case import Case
from pyrometer.workload.training import Training

CODE = "PYR512"


def training(make: Callable[..., torch.optim.Optimizer], layers: int = 8) -> Training:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(layers)])
    batches = [(torch.randn(1, 128), torch.randn(1, 128))]
    return Training(model, functional.mse_loss, make(model.parameters()), batches)


def test_an_adam_that_takes_a_good_part_of_the_step_is_told(observe: Any, only: Any) -> None:
    finding = only(CODE, observe(training(torch.optim.AdamW), "trace", "program"))
    assert finding.evidence["num_tensors"] == 16
    assert finding.cost.share > 0.05
    assert finding.advice.gain.ratio_low < finding.advice.gain.ratio_high < 1
    assert (finding.advice.lever, finding.resource) == ("fused_optimizer", "optimizer")
    assert finding.advice.rewrite is None  # the text that makes it is not at hand


@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: torch.optim.AdamW(parameters, fused=True),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1),  # nothing to gain
        torch.optim.RMSprop,  # has no fused implementation
    ],
)
def test_fused_ones_and_those_that_cannot_gain_are_left_alone(observe: Any, findings: Any, make: Any) -> None:
    assert findings(CODE, observe(training(make), "trace", "program")) == []


def test_an_update_that_is_a_small_part_is_left_alone(observe: Any, only: Any, findings: Any) -> None:
    seen = observe(training(torch.optim.AdamW, layers=1), "program", "measurement")

    def with_share(share: float) -> Case:
        phases = [PhaseTime(name="optimizer", median_s=share, mean_s=share, share=share)]
        return replace(seen, measurement=msgspec.structs.replace(seen.measurement, phases=phases))

    assert findings(CODE, with_share(0.04)) == []
    assert only(CODE, with_share(0.5)).cost.share == 0.5


def test_nothing_is_said_without_times(observe: Any, findings: Any) -> None:
    assert findings(CODE, observe(training(torch.optim.AdamW), "program")) == []


@pytest.mark.parametrize(
    ("name", "options"), [("AdamW", {}), ("Adam", {}), ("SGD", {"momentum": 0.9}), ("Adagrad", {})]
)
def test_the_fused_update_gives_the_same_in_fewer_operators(name: str, options: dict[str, Any]) -> None:
    kind = getattr(torch.optim, name)
    results, counts = [], []
    for fused in (False, True):
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(32, 32)) for _ in range(8)]
        optimizer = kind(parameters, lr=0.01, fused=fused or None, **options)
        for _ in range(3):
            for parameter in parameters:
                parameter.grad = parameter.detach().sin()
            with torch.profiler.profile() as seen:
                optimizer.step()
        counts.append(sum(event.name.startswith("aten::") for event in seen.events()))
        results.append(torch.stack([parameter.detach() for parameter in parameters]))
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    assert counts[0] > 2 * counts[1]


def test_the_fused_adam_takes_a_part_of_the_time() -> None:
    def best(fused: bool) -> float:
        parameters = [nn.Parameter(torch.randn(256, 256)) for _ in range(16)]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer = torch.optim.AdamW(parameters, fused=fused or None)
        times = []
        for _ in range(8):
            begin = time.process_time()
            optimizer.step()
            times.append(time.process_time() - begin)
        return min(times)

    assert best(fused=False) > 1.3 * best(fused=True)
