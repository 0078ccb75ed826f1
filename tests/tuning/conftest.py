"""Programs that are tuned in tests, in a file that fresh processes can load."""

from __future__ import annotations

import textwrap

import pytest

PROGRAMS = """
import os, signal, time
import torch
from torch import nn
import pyrometer as pm

def mlp():
    torch.manual_seed(0)
    return pm.Inference(nn.Sequential(nn.Linear(16, 16), nn.Dropout(), nn.Tanh(), nn.Linear(16, 4)), torch.randn(8, 16))

def convolutions():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)]
    return pm.Inference(nn.Sequential(*layers).train(False), torch.randn(2, 3, 12, 12))

def training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    batches = [(torch.randn(8, 16), torch.randint(0, 4, (8,))) for _ in range(4)]
    return pm.Training(model, nn.functional.cross_entropy, optimizer, batches)

def accuracy(model):
    return float(model(torch.ones(1, 16)).sum())

def correlation(model):
    outputs = model(torch.linspace(-1, 1, 8 * model[0].in_features).reshape(8, -1))
    return float(torch.corrcoef(torch.stack([outputs[:, 0], torch.arange(8.0)]))[0, 1])

def constant(model):
    return 0.5

def raises(model):
    raise KeyError("no labels")

def fails():
    raise ValueError("no weights here")
"""


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The path of the file."""
    path = tmp_path_factory.mktemp("programs") / "programs.py"
    path.write_text(textwrap.dedent(PROGRAMS))
    return path
