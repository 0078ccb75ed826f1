"""No contract is kept by work that was not run."""

from __future__ import annotations

import concurrent.futures
import functools

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import ContractError, InputError, UserProgramError


async def coroutine():
    return torch.ones(3) * 2


def generator():
    yield torch.ones(3) * 2


def later():
    future: concurrent.futures.Future = concurrent.futures.Future()
    return future


NOT_RUN = {
    "coroutine": coroutine,
    "generator": generator,
    "lazy map": lambda: map(torch.exp, [torch.ones(3)]),
    "future": later,
    "nested": lambda: {"scores": [generator()]},
    "kept": lambda: functools.cache(lambda: torch.ones(3) * 2),
}
CONTRACTS = {
    "limit_latency": lambda contract, work: contract.limit_latency(work, "1h"),
    "limit_peak_memory": lambda contract, work: contract.limit_peak_memory(work, "1TiB"),
    "max_graph_breaks": lambda contract, work: contract.max_graph_breaks(work, 1000),
    "max_recompiles": lambda contract, work: contract.max_recompiles(work, 1000),
    "no_graph_retained": lambda contract, work: contract.no_graph_retained(work),
    "same_outputs": lambda contract, work: contract.same_outputs(work, as_=torch.full((3,), 2.0)),
    "no_sync_in_step": lambda contract, work: contract.no_sync_in_step(work),
    "no_leak": lambda contract, work: contract.no_leak(work),
}


@pytest.mark.parametrize("name", CONTRACTS)
@pytest.mark.parametrize("kind", NOT_RUN)
def test_every_contract_refuses_it(contract, name, kind):
    work = NOT_RUN[kind]() if kind == "kept" else NOT_RUN[kind]
    with pytest.raises(ContractError, match=f"{name} refused"):
        CONTRACTS[name](contract, work)
    assert contract.contracts[-1].outcome == "refused"


@pytest.mark.parametrize("undecided", ["warn", "pass"])
def test_no_option_lets_it_pass(contract, undecided):
    contract._undecided = undecided
    with pytest.raises(ContractError, match="refused"):
        contract.no_leak(generator)


def test_a_step_without_any_operator_shows_nothing(contract):
    for name in ("limit_peak_memory", "no_graph_retained", "no_sync_in_step", "no_leak", "max_graph_breaks"):
        with pytest.raises(ContractError, match="no operator of torch"):
            CONTRACTS[name](contract, lambda: sum(range(10)))


@pytest.mark.parametrize("name", CONTRACTS)
def test_what_the_work_raises_is_shown_as_the_users(contract, name):
    class Broken(nn.Module):
        def forward(self, x):
            raise LookupError("no such layer")

    with pytest.raises(UserProgramError, match="no such layer") as caught:
        CONTRACTS[name](contract, pm.Inference(Broken(), torch.ones(2)))
    cause = caught.value.__cause__
    assert isinstance(cause, LookupError)
    assert "pyrometer" not in cause.__traceback__.tb_frame.f_code.co_filename.split("/src/")[-1]
    assert not contract.contracts


@pytest.mark.parametrize("given", [nn.Linear(2, 2), torch.ones(2), 3, "train.py", None])
def test_what_is_no_work_is_told_in_one_line(contract, given):
    with pytest.raises(InputError, match=r"^work: got") as caught:
        contract.no_leak(given)
    assert "\n" not in str(caught.value)


def test_state_is_as_it_was(contract):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(3, 4)).sum().backward()
    work = pm.Training(model, nn.MSELoss(), optimizer, [(torch.randn(8, 4), torch.randn(8, 4))])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    grads = [parameter.grad.clone() for parameter in model.parameters()]
    random = torch.get_rng_state()
    contract.limit_peak_memory(work, "1GiB")
    contract.no_graph_retained(work)
    contract.no_sync_in_step(work)
    contract.no_leak(work, steps=30)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(
        torch.equal(parameter.grad, grad) for parameter, grad in zip(model.parameters(), grads, strict=True)
    )
    assert torch.equal(torch.get_rng_state(), random)
    assert optimizer.state == {}
