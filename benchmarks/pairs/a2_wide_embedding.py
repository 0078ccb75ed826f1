"""Click prediction over hashed user and item identifiers, trained on a stream of impressions."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import pyrometer as pm


@dataclass(frozen=True)
class Config:
    buckets: int = 120_000
    width: int = 32
    history: int = 10
    batch: int = 256
    lr: float = 0.05


class ClickModel(nn.Module):
    def __init__(self, config: Config, *, sparse: bool) -> None:
        super().__init__()
        self.history = nn.EmbeddingBag(config.buckets, config.width, mode="mean", sparse=sparse)
        self.candidate = nn.Embedding(config.buckets, config.width, sparse=sparse)
        self.tower = nn.Sequential(
            nn.Linear(3 * config.width, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, history: Tensor, candidate: Tensor) -> Tensor:
        user = self.history(history)
        item = self.candidate(candidate)
        return self.tower(torch.cat([user, item, user * item], dim=1)).squeeze(1)


class Impressions:
    """Impressions from a log, in the order of time."""

    def __init__(self, config: Config, count: int = 24) -> None:
        generator = torch.Generator().manual_seed(7)
        shape = (count, config.batch)
        self.history = torch.randint(config.buckets, (*shape, config.history), generator=generator)
        self.item = torch.randint(config.buckets, shape, generator=generator)
        self.clicked = (torch.rand(shape, generator=generator) < 0.2).float()

    def __iter__(self) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor]]:
        for history, item, clicked in zip(self.history, self.item, self.clicked, strict=True):
            yield (history, item), clicked


def training(config: Config, *, sparse: bool) -> pm.Training:
    torch.manual_seed(1)
    model = ClickModel(config, sparse=sparse)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr)
    return pm.Training(
        model,
        nn.BCEWithLogitsLoss(),
        optimizer,
        Impressions(config),
        unit="impressions",
        per_step=config.batch,
    )


def slow() -> pm.Training:
    return training(Config(), sparse=False)


def fast() -> pm.Training:
    return training(Config(), sparse=True)
