"""Small models, compiled in the ways in which people compile."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch import nn

WIDTH = 16


class Branching(nn.Module):
    """One break: a branch that depends on data; two graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(x))
        if y.sum() > -1:
            y = y + 1
        return self.second(y)


class Straight(nn.Module):
    """No break; one graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def logging_state() -> dict[str, Any]:
    """Levels, handlers and propagation of every logger; torch's own trace handler leaves by itself."""
    found: dict[str, Any] = {"": (logging.root.level, list(logging.root.handlers))}
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            handlers = [
                handler for handler in logger.handlers if type(handler).__name__ != "LazyTraceHandler"
            ]
            found[name] = (logger.level, handlers, logger.propagate, logger.disabled)
    return found


def compiler_state() -> dict[str, Any]:
    """Stance, settings of Dynamo and Inductor, logging, random state."""
    import torch._dynamo.config
    import torch._dynamo.eval_frame
    import torch._inductor.config

    return {
        "stance": torch._dynamo.eval_frame._stance,
        "dynamo": torch._dynamo.config.save_config_portable(),
        "inductor": torch._inductor.config.save_config_portable(),
        "logging": logging_state(),
        "random": torch.random.get_rng_state().tolist(),
        "grad": torch.is_grad_enabled(),
    }


def differences(before: dict[str, Any]) -> dict[str, Any]:
    """What is not as it was; loggers of modules that were imported since do not count, nor do they have handlers."""
    after = compiler_state()
    known, found = before.pop("logging"), after.pop("logging")
    changed = {name: value for name, value in after.items() if value != before[name]}
    changed |= {
        f"logger {name}": value
        for name, value in found.items()
        if value != known.get(name, (logging.NOTSET, [], True, False))
    }
    return changed


@pytest.fixture
def straight() -> Straight:
    torch.manual_seed(0)
    return Straight()


@pytest.fixture
def branching() -> Branching:
    torch.manual_seed(0)
    return Branching()


@pytest.fixture
def batch() -> torch.Tensor:
    return torch.randn(4, WIDTH)
