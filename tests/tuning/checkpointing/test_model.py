"""The model of bytes against steps that were run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pyrometer.memory.recording.steps import record_steps
from pyrometer.tuning.checkpointing.applying import CheckpointedTraining
from pyrometer.tuning.checkpointing.building import OptionCost, step_model
from pyrometer.tuning.checkpointing.candidates import reason_against
from pyrometer.tuning.checkpointing.observing import observe_step

CLOSE = 0.01
RNG_STATE = 5056
"""Bytes of the random state that each checkpointed call keeps."""


def measured_peak(work):
    """Of tensors: what operators take for themselves is measured and added by the planner."""
    return record_steps(work).peak_bytes


def modelled(work, policies=("full", "keep-matmul")):
    trace = observe_step(work)
    modules = dict.fromkeys(call.module for call in trace.calls)
    fit = [path for path in modules if reason_against(trace, path) is None]
    costs = [OptionCost(path, policy, 1.0) for path in fit for policy in policies]
    return trace, costs, step_model(trace, costs)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("transformer", marks=pytest.mark.slow),
        pytest.param("cnn", marks=pytest.mark.exhaustive),
        pytest.param("unet", marks=pytest.mark.exhaustive),
        "mlp",
    ],
)
def test_peaks_of_many_sets_are_as_measured(works, tools, kind):
    work = getattr(works, kind)()
    trace, costs, model = modelled(work)
    assert abs(model.peak() / measured_peak(work) - 1) < CLOSE
    for chosen in tools.random_choices(model, 5):
        policies = {costs[index].module: costs[index].policy for index in chosen}
        planned = CheckpointedTraining(work, policies, tools.written(trace, policies))
        measured = measured_peak(planned)
        assert abs(model.peak(chosen) - measured) <= CLOSE * measured + RNG_STATE * len(chosen), policies


@pytest.mark.parametrize(
    "settings", [pytest.param({"accumulate": 3}, marks=pytest.mark.exhaustive), {"amp": "bfloat16"}]
)
def test_accumulation_and_autocast_are_modelled(works, tools, settings):
    work = works.transformer(**settings)
    _, costs, model = modelled(work, ("full",))
    assert abs(model.peak() / measured_peak(work) - 1) < CLOSE
    for chosen in tools.random_choices(model, 2):
        policies = {costs[index].module: costs[index].policy for index in chosen}
        measured = measured_peak(CheckpointedTraining(work, policies))
        assert abs(model.peak(chosen) - measured) <= 0.03 * measured + RNG_STATE * len(chosen), policies


def test_a_module_called_several_times_is_recomputed_for_each_call(works):
    class Repeated(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 32))

        def forward(self, x):
            for _ in range(4):
                x = self.inner(x)
            return x

    x = torch.randn(64, 32)
    work = works.training(Repeated(), nn.L1Loss(), (x, x))
    trace, costs, model = modelled(work, ("full",))
    assert len(trace.calls_of("inner")) == 4
    index = next(i for i, cost in enumerate(costs) if cost.module == "inner")
    measured = measured_peak(CheckpointedTraining(work, {"inner": "full"}))
    assert measured < 0.8 * measured_peak(work)
    assert abs(model.peak([index]) - measured) <= CLOSE * measured + 4 * RNG_STATE


def test_observing_a_step_leaves_the_model_and_optimizer_as_they_were(works):
    work = works.cnn()
    model = work.parts.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    observe_step(work)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any("forward" in vars(part) for part in model.modules())
    assert not work.parts.optimizer.state
    assert all(parameter.grad is None for parameter in model.parameters())
