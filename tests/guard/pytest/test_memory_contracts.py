"""What a step takes and leaves behind: programs that keep the contracts, and such that do not."""

from __future__ import annotations

import collections

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import ContractError, InputError

MIB = 2**20


def trained(loss, model=None):
    model = model or nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    batches = [(torch.randn(4, 6), torch.randn(4, 1)) for _ in range(3)]
    return pm.Training(model, loss, torch.optim.SGD(model.parameters(), 0.01), batches)


class Wide(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(256, width, bias=False), nn.Linear(width, 1, bias=False)

    def forward(self, x):
        return self.down(self.up(x).relu())


def test_a_peak_within_its_limit_is_kept(contract):
    work = pm.Inference(Wide(512), torch.randn(8, 256))
    result = contract.limit_peak_memory(work, "4MiB")
    assert result.outcome == "kept"
    assert 512 * 257 * 4 < result.value < 4 * MIB


def test_a_peak_over_its_limit_names_who_holds_it(contract):
    work = pm.Inference(Wide(4096), torch.randn(256, 256))
    with pytest.raises(ContractError, match=r"limit_peak_memory broken: Wide") as caught:
        contract.limit_peak_memory(work, 4 * MIB)
    assert "test_memory_contracts.py" in str(caught.value)
    assert "temporaries 8.00 MiB" in str(caught.value)


def test_what_one_byte_more_than_the_peak_allows_is_kept_and_one_less_is_not(contract):
    work = pm.Inference(Wide(64), torch.randn(8, 256))
    peak = contract.limit_peak_memory(work, "1GiB").value
    assert contract.limit_peak_memory(work, peak).outcome == "kept"
    with pytest.raises(ContractError, match="broken"):
        contract.limit_peak_memory(work, peak - 1)


class Recorder(nn.Module):
    """A criterion that remembers what it gave."""

    def __init__(self, keep):
        super().__init__()
        self.seen = collections.deque(maxlen=1000)
        self.keep = keep

    def forward(self, output, target):
        loss = (output - target).abs().mean()
        self.seen.append(self.keep(loss))
        return loss


@pytest.mark.parametrize(
    "keep", [torch.Tensor.item, torch.Tensor.detach, lambda loss: loss.detach().clone(), str]
)
def test_a_loss_kept_without_its_graph(contract, keep):
    assert contract.no_graph_retained(trained(Recorder(keep))).outcome == "kept"


@pytest.mark.parametrize(
    "keep", [lambda loss: loss, lambda loss: loss * 2, lambda loss: {"l1": loss}, lambda loss: loss.view(1)]
)
def test_a_loss_kept_with_its_graph(contract, keep):
    with pytest.raises(ContractError, match="no_graph_retained broken") as caught:
        contract.no_graph_retained(trained(Recorder(keep)))
    assert "seen" in str(caught.value)
    assert "detach()" in str(caught.value)


def test_the_line_that_made_what_is_kept_is_named(contract):
    with pytest.raises(ContractError, match=r"made at test_memory_contracts.py:\d+: loss = "):
        contract.no_graph_retained(trained(Recorder(lambda loss: loss)))


def test_only_the_last_loss_kept_on_an_object_is_seen_too(contract):
    class Logger:
        last = None

    logger = Logger()

    def loss(output, target):
        logger.last = nn.functional.l1_loss(output, target)
        return logger.last

    with pytest.raises(ContractError, match=r"1 tensor with(.|\n)* held by logger\.last"):
        contract.no_graph_retained(trained(loss))


def test_weights_that_torch_computes_anew_in_each_step_are_its_own(contract):
    with pytest.warns(FutureWarning):
        first = nn.utils.weight_norm(nn.Linear(6, 12))
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(12, 1))
    assert contract.no_graph_retained(trained(nn.MSELoss(), model)).outcome == "kept"


def test_what_was_kept_before_the_contract_is_not_of_its_steps(contract):
    kept = torch.ones(3, requires_grad=True) * 2
    assert contract.no_graph_retained(trained(nn.MSELoss())).outcome == "kept"
    assert kept.grad_fn is not None


def test_a_hidden_state_that_is_carried_over_with_its_graph(contract):
    cell, state = nn.GRUCell(4, 8), {"h": torch.zeros(2, 8)}

    def step():
        state["h"] = cell(torch.randn(2, 4), state["h"])

    with pytest.raises(ContractError, match="no_graph_retained broken"):
        contract.no_graph_retained(step)

    def truncated():
        state["h"] = cell(torch.randn(2, 4), state["h"].detach()).detach()

    assert contract.no_graph_retained(truncated).outcome == "kept"


def test_memory_that_stays_is_a_leak_and_a_full_ring_is_not(contract):
    frames, ring = [], collections.deque(maxlen=3)
    with pytest.raises(ContractError, match=r"no_leak broken") as caught:
        contract.no_leak(lambda: frames.append(torch.randn(300).exp()), steps=40)
    assert "frames" in str(caught.value)
    assert contract.no_leak(lambda: ring.append(torch.randn(300).exp()), steps=40).outcome == "kept"


def test_too_few_steps_are_refused(contract):
    with pytest.raises(InputError, match="at least 24"):
        contract.no_leak(lambda: torch.ones(2) + 1, steps=5)
