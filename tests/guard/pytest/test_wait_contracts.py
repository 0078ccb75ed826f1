"""What makes a host wait for a device, told on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pyrometer as pm
from pyrometer.errors import ContractError


class Head(nn.Module):
    """A detector's head, whose last step is given."""

    def __init__(self, last):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 4, 3), last

    def forward(self, x):
        return self.last(self.conv(x).flatten(1))


READS = {
    "item": lambda y: y.sum().item(),
    "float": lambda y: float(y[0, 0]),
    "condition": lambda y: y if y.max() > 0 else -y,
    "mask": lambda y: y[y > 0.1],
    "nonzero": lambda y: torch.nonzero(y > 0),
    "where": lambda y: torch.where(y > 0)[0],
    "unique": lambda y: torch.unique((y * 10).int()),
    "tolist": lambda y: y[0].tolist(),
    "numpy": lambda y: y.detach().cpu().numpy(),
    "asarray": lambda y: np.asarray(y.detach()),
    "masked select": lambda y: y.masked_select(y > 0),
    "print": lambda y: str(y[0, 0]),
}
SILENT = {
    "argmax": lambda y: y.argmax(1),
    "where of three": lambda y: torch.where(y > 0, y, 0.0),
    "gather": lambda y: y.gather(1, y.argsort(1)),
    "integer index": lambda y: y[:, torch.tensor([0, 2])],
    "clamp": lambda y: y.clamp(min=0).softmax(1),
    "shape": lambda y: y * y.shape[0] + y.numel(),
    "same device": lambda y: y.to("cpu").to(torch.float64),
    "masked fill": lambda y: y.masked_fill(y > 0, 1.0),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_in_the_step_is_named_with_its_line(contract, name):
    work = pm.Inference(Head(READS[name]), torch.randn(2, 3, 8, 8))
    with pytest.raises(ContractError, match="no_sync_in_step broken") as caught:
        contract.no_sync_in_step(work)
    assert "test_wait_contracts.py:" in str(caught.value)


@pytest.mark.parametrize("name", SILENT)
def test_what_only_computes_is_none(contract, name):
    assert contract.no_sync_in_step(pm.Inference(Head(SILENT[name]), torch.randn(2, 3, 8, 8))).value == 0


class Crops(Dataset):
    """Transforms draw numbers on the host, whatever the device of the training."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        left = int(torch.randint(0, 3, (1,)).item())
        return torch.randn(3, 11, 11)[:, left : left + 8, left : left + 8], torch.tensor(index % 2)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_what_optimizers_and_loaders_read_lies_on_the_host(contract, optimizer):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 2))
    loader = DataLoader(Crops(), batch_size=3)
    work = pm.Training(model, nn.CrossEntropyLoss(), optimizer(model.parameters()), loader)
    assert contract.no_sync_in_step(work).outcome == "kept"


def test_waits_are_counted_per_step(contract):
    def step():
        y = torch.randn(4) * 2
        return sum(float(y[index]) for index in range(3))

    with pytest.raises(ContractError, match=r"3 waits per step"):
        contract.no_sync_in_step(step)


def test_a_read_in_the_first_steps_only_is_warm_up(contract):
    seen = []

    def step():
        y = torch.randn(4) * 2
        if not seen:
            seen.append(y.sum().item())
        return y

    assert contract.no_sync_in_step(step).outcome == "kept"
