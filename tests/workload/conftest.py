"""Small models and trainings that the tests of this room share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.workload.training import Training


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny steps: a second thread only waits for its turn on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Wide(nn.Module):
    """Everything that a step may change: weights, a tied one, batch norm, dropout, a counter, a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(8, 6, bias=False)
        self.tied = nn.Linear(6, 8, bias=False)
        self.last.weight = nn.Parameter(torch.randn(6, 8))
        self.tied.weight = nn.Parameter(self.first.weight.detach().clone())
        self.first.weight = self.tied.weight
        self.calls = 0
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        return self.last(self.drop(self.norm(self.first(x)).relu()))


@pytest.fixture
def wide() -> Wide:
    torch.manual_seed(0)
    return Wide()


def pairs(num: int = 3, size: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(size, 6, generator=generator), torch.randn(size, 6, generator=generator))
        for _ in range(num)
    ]


def losses(work: Training, num: int = 4) -> list[float]:
    with work.open() as session:
        return [session.step(session.prepare()).item() for _ in range(num)]


@pytest.fixture
def make_training(wide: Wide) -> Callable[..., Training]:
    def make(
        optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
        model: nn.Module = wide,
        **options: Any,
    ) -> Training:
        made = optimizer(model.parameters(), lr=options.pop("lr", 0.05))
        batches = options.pop("batches", pairs())
        loss = options.pop("loss", nn.functional.mse_loss)
        if "scheduler" in options:
            options["scheduler"] = options["scheduler"](made)
        return Training(model, loss, made, batches, **options)

    return make


@pytest.fixture
def losses_of() -> Callable[..., list[float]]:
    return losses


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else dedent(text).lstrip().encode())
        return path

    return write


def snapshot(value: Any) -> Any:
    """A deep, independent picture of tensors, state and attributes, to compare by `same`."""
    if isinstance(value, torch.Tensor):
        grad = value.grad if value.is_leaf else None
        return ("tensor", id(value), value.detach().clone(), None if grad is None else snapshot(grad))
    if isinstance(value, dict):
        return {key: snapshot(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [snapshot(entry) for entry in value]
    return value


def same(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two) and one.dtype == two.dtype and one.stride() == two.stride()
    if isinstance(one, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return bool(one == two)


@pytest.fixture
def picture() -> Callable[[Training], Any]:
    def picture(work: Training) -> Any:
        parts = work.parts
        model = parts.model
        return snapshot(
            {
                "tensors": [*model.named_parameters(), *model.named_buffers()],
                "modes": [part.training for part in model.modules()],
                "attributes": [
                    {k: v for k, v in vars(part).items() if not k.startswith("_")} for part in model.modules()
                ],
                "state": {id(p): s for p, s in parts.optimizer.state.items()},
                "groups": parts.optimizer.param_groups,
                "scheduler": parts.scheduler and parts.scheduler.state_dict(),
                "scaler": parts.scaler and parts.scaler.state_dict(),
            }
        )

    return picture


@pytest.fixture
def alike() -> Callable[[Any, Any], bool]:
    return same
