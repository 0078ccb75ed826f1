from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pyrometer as pm


def observed(observe, width=1024, **settings):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(width, width), **settings)
    batches = [(torch.randn(4, width), torch.randn(4, width))]
    work = pm.Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1), batches)
    return observe(work, "program"), model


@pytest.mark.usefixtures("group")
def test_the_setting_off_costs_the_gradients_once_more(findings, observe):
    evidence, model = observed(observe)
    (finding,) = findings("PYR605", evidence)
    size = sum(parameter.numel() * 4 for parameter in model.parameters())
    assert finding.cost.bytes == finding.advice.gain.saves_bytes == size
    assert finding.severity == "info"


@pytest.mark.usefixtures("group")
def test_the_advice_puts_gradients_into_the_buckets_and_changes_no_result(findings, observe):
    evidence, viewing = observed(observe, gradient_as_bucket_view=True)
    assert findings("PYR605", evidence) == []
    _, apart = observed(observe)
    x = torch.randn(4, 1024)
    for model in (viewing, apart):
        model(x).pow(2).sum().backward()
    pairs = list(zip(viewing.parameters(), apart.parameters(), strict=True))
    assert all(torch.equal(one.grad, other.grad) for one, other in pairs)
    storages = {parameter.grad.untyped_storage().data_ptr() for parameter in viewing.parameters()}
    assert len(storages) == 1  # one bucket holds all of them
    assert len({parameter.grad.untyped_storage().data_ptr() for parameter in apart.parameters()}) == 2


@pytest.mark.usefixtures("group")
def test_small_models_are_silent(findings, observe):
    assert findings("PYR605", observed(observe, width=16)[0]) == []


def test_a_model_without_ranks_is_silent(findings, observe):
    model = nn.Linear(1024, 1024)
    assert findings("PYR605", observe(pm.Inference(model, torch.randn(2, 1024)), "program")) == []
