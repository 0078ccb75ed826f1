"""Whether a training waits for its loader."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import pyrometer as pm
from pyrometer.errors import ContractError, InputError
from pyrometer.guard.pytest.contracts.loading import share_of


class Decoded(Dataset):
    """Samples that take some milliseconds of another thing than computing."""

    def __init__(self, wait_s):
        self.wait_s = wait_s

    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(self.wait_s)
        return torch.full((32,), float(index)), torch.tensor(index % 3)


def training(batches, width=64):
    model = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 3))
    return pm.Training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), batches)


def test_a_share_has_an_interval_and_bursts_count_as_what_they_take():
    share, low, high = share_of([0.1] * 40, [1.0] * 40)
    assert share == low == high == pytest.approx(0.1)
    share, low, high = share_of([0.0, 0.0, 0.0, 9.0] * 20, [1.0, 1.0, 1.0, 10.0] * 20)
    assert share == pytest.approx(9 / 13)
    assert low < share < high


def test_batches_that_are_there_already_load_nothing(contract):
    with pytest.raises(ContractError, match=r"max_data_share refused(.|\n)*list in memory"):
        contract.max_data_share(training([(torch.randn(4, 32), torch.zeros(4).long())]), "99%")


def test_only_a_training_has_a_loader(contract):
    with pytest.raises(InputError, match=r"pm\.Training"):
        contract.max_data_share(pm.Inference(nn.Linear(2, 2), torch.ones(1, 2)), "20%")


@pytest.mark.parametrize("most", ["150%", 0, 1.0, "a lot"])
def test_a_share_lies_between_none_and_all(contract, most):
    with pytest.raises(InputError, match=r"share|150 %|150%"):
        contract.max_data_share(training(DataLoader(Decoded(0), batch_size=4)), most)


@pytest.mark.measuring
def test_a_slow_loader_is_the_bottleneck(contract):
    with pytest.raises(ContractError, match="max_data_share broken") as caught:
        contract.max_data_share(training(DataLoader(Decoded(0.02), batch_size=8)), "30%", budget="2s")
    assert "loading and computing take turns" in str(caught.value)


@pytest.mark.measuring
def test_a_quick_loader_is_not(contract):
    data = TensorDataset(torch.randn(4096, 32), torch.zeros(4096).long())
    loader = DataLoader(data, batch_sampler=torch.utils.data.BatchSampler(range(4096), 256, drop_last=False))
    work = training(loader, width=4096)
    assert contract.max_data_share(work, "90%", budget="1s").outcome == "kept"
