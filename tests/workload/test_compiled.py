from __future__ import annotations

import pytest
import torch
from torch import nn

from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))


def trained(model):
    optimizer = torch.optim.AdamW(model.parameters())
    return Training(model, nn.functional.mse_loss, optimizer, [(torch.ones(3, 4), torch.zeros(3, 2))])


def steps(work, num=3):
    with work.open() as session:
        return [session.step(session.prepare()) for _ in range(num)]


def test_a_model_that_comes_compiled_runs_as_it_comes_and_plain_on_demand(net):
    compiled = torch.compile(net, backend="eager")
    x = torch.randn(3, 4)
    work = Inference(compiled, x)
    assert work.name == "Sequential"
    with work.open() as session, work.variant(mode="eager").open() as plain:
        assert session.model is compiled
        assert plain.model is net
        torch.testing.assert_close(session.step(session.prepare()), plain.step(plain.prepare()))
    assert net.training


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
def test_a_compiled_model_is_trained_in_place_and_as_a_copy(net):
    plain = steps(trained(net))
    before = [parameter.clone() for parameter in net.parameters()]
    work = trained(torch.compile(net, backend="eager"))
    with work.open() as one, work.open() as two:
        for expected in plain:
            torch.testing.assert_close(one.step(one.prepare()), expected)
            torch.testing.assert_close(two.step(two.prepare()), expected)
        assert two.parts.model._orig_mod is not net
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), before, strict=True))


@pytest.mark.exhaustive
def test_compiled_variants_give_the_same_and_leave_the_model_alone(net):
    x = torch.randn(3, 4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    for work in (Inference(net, x), trained(net), Call(lambda x: (x * 2).relu().sum(), x)):
        with work.open() as plain, work.compiled().open() as compiled:
            for _ in range(3):
                torch.testing.assert_close(compiled.step(compiled.prepare()), plain.step(plain.prepare()))
        assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
        assert net.training
