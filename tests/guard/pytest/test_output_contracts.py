"""Whether a changed program computes the same."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import ContractError, InputError


@pytest.fixture
def encoder():
    return nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)


X = torch.randn(2, 5, 16)


def test_a_change_of_order_within_rounding_is_kept(contract, encoder):
    work = pm.Inference(encoder, X)
    assert contract.same_outputs(work.variant(dtype="float64"), as_=work).outcome == "kept"
    assert contract.same_outputs(work.variant(dtype="bfloat16"), as_=work).outcome == "kept"


def test_a_changed_weight_is_not(contract, encoder):
    import copy

    changed = copy.deepcopy(encoder)
    changed.linear2.bias.data[3] += 0.01
    with pytest.raises(ContractError, match="same_outputs broken") as caught:
        contract.same_outputs(pm.Inference(changed, X), as_=pm.Inference(encoder, X))
    assert "of output 0" in str(caught.value)


def test_tolerances_are_those_of_torch(contract):
    ours, theirs = torch.tensor([1.0, 100.0]), torch.tensor([1.0, 101.0])
    for atol, rtol in ((1.0, None), (None, 0.01), (0.5, 0.005), (0.99, None), (None, 0.0098), (0.4, 0.005)):
        keeps = torch.allclose(ours, theirs, atol=atol or 0, rtol=rtol or 0)
        if keeps:
            assert contract.same_outputs(ours.clone, as_=theirs, atol=atol, rtol=rtol).outcome == "kept"
        else:
            with pytest.raises(ContractError, match="broken"):
                contract.same_outputs(ours.clone, as_=theirs, atol=atol, rtol=rtol)


def test_recorded_outputs_of_any_nesting(contract):
    def step():
        return {"logits": torch.arange(4.0), "more": (torch.ones(2), 3)}

    assert contract.same_outputs(step, as_=step()).outcome == "kept"
    with pytest.raises(ContractError, match="another structure"):
        contract.same_outputs(step, as_={"logits": torch.arange(4.0)})
    with pytest.raises(ContractError, match="shape"):
        contract.same_outputs(step, as_={"logits": torch.arange(5.0), "more": (torch.ones(2), 3)})


def test_the_losses_of_a_training_are_compared_with_their_updates(contract):
    def training(lr):
        torch.manual_seed(1)
        model = nn.Linear(4, 1)
        batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]
        return pm.Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr), batches)

    assert contract.same_outputs(training(0.1), as_=training(0.1)).outcome == "kept"
    with pytest.raises(ContractError, match="broken"):
        contract.same_outputs(training(0.2), as_=training(0.1))


def test_nan_is_not_the_same_as_a_number_nor_is_it_a_reference(contract):
    nan = torch.full((3,), torch.nan)
    with pytest.raises(ContractError, match="NaN or infinity where the reference has another value"):
        contract.same_outputs(lambda: nan * 1, as_=torch.ones(3))
    with pytest.raises(ContractError, match=r"refused(.|\n)*no finite number"):
        contract.same_outputs(lambda: nan * 1, as_=nan)


def test_random_outputs_are_undecided(contract):
    with pytest.raises(ContractError, match="undecided"):
        contract.same_outputs(lambda: torch.rand(3), as_=lambda: torch.rand(3))


def test_random_outputs_that_differ_are_undecided_too(contract):
    layer = nn.Dropout(0.5).train()
    with pytest.raises(ContractError, match="undecided"):
        contract.same_outputs(lambda: layer(torch.ones(64)) * 2, as_=lambda: layer(torch.ones(64)))


def test_complex_and_sparse_outputs(contract):
    spectrum = torch.fft.fft(torch.arange(8.0))
    assert (
        contract.same_outputs(lambda: torch.fft.fft(torch.arange(8.0)), as_=spectrum, rtol=1e-5).outcome
        == "kept"
    )
    with pytest.raises(ContractError, match="broken"):
        contract.same_outputs(lambda: torch.fft.fft(torch.arange(8.0)).conj(), as_=spectrum, rtol=1e-5)
    assert contract.same_outputs(lambda: torch.eye(3).to_sparse(), as_=torch.eye(3), atol=0).outcome == "kept"


def test_nothing_is_compared_with_itself(contract):
    work = pm.Inference(nn.Linear(2, 2), torch.ones(1, 2))
    with pytest.raises(InputError, match="are the same"):
        contract.same_outputs(work, as_=work)


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_illegal_tolerances(contract, tolerance):
    with pytest.raises(InputError, match="rtol"):
        contract.same_outputs(lambda: torch.ones(1) + 0, as_=torch.ones(1), rtol=tolerance)
