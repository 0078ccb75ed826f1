"""Numerics of small programs, watched for real, as evidence."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import pyrometer as pm
from pyrometer.numerics.report import NumericsReport
from pyrometer.numerics.watch import watch_numerics
from pyrometer.rules.case import Case


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def training(load: Callable[[str], ModuleType]) -> Callable[..., pm.Training]:
    """`training(model, loss=, target=, lr=, **options of pm.Training)`, as the tests of numerics make it."""
    make: Callable[..., pm.Training] = load("tests/numerics/conftest.py").make_training
    return make


@pytest.fixture
def watched() -> Callable[..., Case]:
    """`watched(workload or report, steps=5, **other evidence)`: evidence with the numerics of a workload."""

    def look(what: Any, steps: int = 5, **more: Any) -> Case:
        report = what if isinstance(what, NumericsReport) else watch_numerics(what, steps=steps)
        return Case(target="test", numerics=report, **more)

    return look
