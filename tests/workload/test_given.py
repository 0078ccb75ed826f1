"""A model and its inputs stand for their forward pass."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.workload.given import workload_of


class Sum(nn.Module):
    def forward(self, x, y=None):
        return x if y is None else x + y


X = torch.ones(4, 3)


def output_of(work):
    with work.open() as session:
        return session.step(session.prepare())


@pytest.mark.parametrize(
    ("args", "kwargs", "value"),
    [
        ((X,), {}, 1),
        ((X, X), {}, 2),
        ((X,), {"y": X}, 2),
        ((), {"x": X, "y": X}, 2),
        (({"x": X, "y": X},), {}, 2),
        (((X, X),), {}, 2),
    ],
)
def test_inputs_reach_the_model(args, kwargs, value):
    assert torch.equal(output_of(workload_of(Sum(), args, kwargs)), X * value)


def test_a_workload_is_itself():
    work = pm.Inference(Sum(), X)
    assert workload_of(work, (), {}) is work


@pytest.mark.parametrize(
    ("given", "args", "kwargs", "said"),
    [
        (Sum(), (), {}, "needs inputs"),
        (Sum(), (X,), {"budget": 1}, "budget"),
        (Sum(), (X, X, X), {}, "too many"),
        (pm.Inference(Sum(), X), (X,), {}, "beside a workload"),
        (pm.Inference(Sum(), X), (), {"budget": 1}, "budget"),
        ("model", (X,), {}, "got str"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(given, args, kwargs, said):
    with pytest.raises(InputError, match=said) as caught:
        workload_of(given, args, kwargs)
    assert "\n" not in str(caught.value)


def test_a_model_is_measured_as_its_inference():
    m = pm.measure(Sum(), X, y=X, budget_s=0.05)
    assert (m.name, m.units_per_step) == ("Sum", 4)
