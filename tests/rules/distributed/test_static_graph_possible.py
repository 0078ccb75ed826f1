from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pyrometer as pm


class Two(nn.Module):
    """A second branch that is used, or not, or now and then."""

    def __init__(self, use) -> None:
        super().__init__()
        self.one, self.two, self.use = nn.Linear(8, 4), nn.Linear(8, 4), use

    def forward(self, x):
        return self.one(x) + (self.two(x) if next(self.use) else 0.0)


def observed(observe, use, steps=4, kinds=("program", "numerics"), **settings):
    model = DistributedDataParallel(Two(iter(use)), **settings)
    batches = [(torch.randn(4, 8), torch.randint(0, 4, (4,)))]
    work = pm.Training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), batches)
    return observe(work, *kinds, steps=steps)


@pytest.mark.usefixtures("group")
def test_the_same_unused_parameters_in_every_step_are_found(findings, observe):
    (finding,) = findings("PYR606", observed(observe, [False] * 20, find_unused_parameters=True))
    assert "the same 2 parameters are unused in each of 4 steps" in finding.message
    assert finding.evidence["unused"] == ["module.two.weight", "module.two.bias"]
    assert finding.advice.lever == "ddp_static_graph"


@pytest.mark.usefixtures("group")
def test_the_advice_trains_the_same(findings, observe):
    """A static graph without any search: the same parameters get the same gradients."""
    grads = {}
    for name, settings in {
        "search": {"find_unused_parameters": True},
        "static": {"static_graph": True},
    }.items():
        torch.manual_seed(0)
        model = DistributedDataParallel(Two(iter([False] * 20)), **settings)
        for _ in range(3):
            model(torch.ones(2, 8)).sum().backward()
        grads[name] = [parameter.grad for parameter in model.parameters()]
    for searched, static in zip(*grads.values(), strict=True):
        assert (searched is None) == (static is None)
        assert searched is None or torch.equal(searched, static)
    assert findings("PYR606", observed(observe, [False] * 20, kinds=("program",), static_graph=True)) == []


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("use", "steps"), [([True, False] * 10, 4), ([False] * 20, 2)], ids=["now and then", "too few steps"]
)
def test_it_is_silent(findings, observe, use, steps):
    assert findings("PYR606", observed(observe, use, steps, find_unused_parameters=True)) == []


@pytest.mark.usefixtures("group")
@pytest.mark.filterwarnings("ignore:find_unused_parameters")
def test_all_parameters_in_use_are_silent(findings, observe):
    assert findings("PYR606", observed(observe, [True] * 20, find_unused_parameters=True)) == []
