"""Programs with numbers that are not sound, each for one reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import pyrometer as pm


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def make_training(model: nn.Module, *, loss: Any = None, target: Any = None, **options: Any) -> pm.Training:
    """A classification with four classes and eight features, unless a target is given."""
    batch = (torch.randn(16, 8), torch.randint(0, 4, (16,)) if target is None else target)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.pop("lr", 0.1))
    return pm.Training(model, loss or nn.CrossEntropyLoss(), optimizer, [batch], **options)


@pytest.fixture
def training() -> Callable[..., pm.Training]:
    """`training(model, loss=, target=, lr=, **options of pm.Training)`."""
    return make_training


@pytest.fixture
def line_of() -> Callable[[Any, str], int]:
    """`line_of(function, text)`: the line of a function's source that holds a text."""

    def look(function: Any, text: str) -> int:
        import inspect

        lines, first = inspect.getsourcelines(function)
        return first + next(number for number, line in enumerate(lines) if text in line)

    return look
