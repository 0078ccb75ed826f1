"""Datasets whose cost is known, and trainings of known length over them."""

from __future__ import annotations

import multiprocessing
import time
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import pyrometer as pm


class Slow(Dataset):
    """Samples that take a while, as if they came from a disk; every `every`-th takes longer."""

    def __init__(self, sleep_s=0.0, size=4000, every=0, longer_s=0.0):
        self.sleep_s, self.size, self.every, self.longer_s = sleep_s, size, every, longer_s

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        time.sleep(self.longer_s if self.every and index % self.every == 0 else self.sleep_s)
        return torch.full((4,), float(index)), torch.zeros(1)


class Compressed(Dataset):
    """Images that must be inflated and normalised: work for a CPU."""

    def __init__(self, folder, size=64, side=96):
        self.size, self.side, self.folder = size, side, folder
        rng = np.random.default_rng(0)
        for index in range(size):
            pixels = rng.integers(0, 32, side * side * 3, dtype=np.uint8)
            (folder / f"{index}.z").write_bytes(zlib.compress(pixels.tobytes()))

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        raw = zlib.decompress((self.folder / f"{index}.z").read_bytes())
        image = np.frombuffer(raw, dtype=np.uint8).reshape(3, self.side, self.side).astype(np.float32)
        return torch.from_numpy((image - image.mean()) / (image.std() + 1e-5)), torch.zeros(1)


class Numbers(IterableDataset):
    """Shares its numbers among the workers, unless it forgets to."""

    def __init__(self, size=64, *, shares=True):
        self.size, self.shares = size, shares

    def __iter__(self):
        info = get_worker_info()
        start, step = (info.id, info.num_workers) if info is not None and self.shares else (0, 1)
        yield from (torch.full((4,), float(number)) for number in range(start, self.size, step))


def training(loader, step_s=0.0):
    """A training whose step takes at least so long, waiting."""
    model = nn.Linear(4, 1)

    def loss(output, target):
        time.sleep(step_s)
        return (output - target).square().mean()

    return pm.Training(model, loss, torch.optim.SGD(model.parameters(), lr=1e-3), loader)


@pytest.fixture
def make():
    return SimpleNamespace(
        Slow=Slow, Compressed=Compressed, Numbers=Numbers, training=training, DataLoader=DataLoader
    )


@pytest.fixture(autouse=True)
def no_workers_left():
    yield
    assert multiprocessing.active_children() == []


@pytest.fixture(autouse=True)
def two_cpus_are_enough():
    """torch warns about more workers than CPUs; that more may help is what is tested."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield
