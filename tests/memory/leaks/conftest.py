"""One thread for torch, and the simulated programs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def simulation():
    return load(Path(__file__).with_name("simulation.py"))


@pytest.fixture(autouse=True)
def quiet_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
